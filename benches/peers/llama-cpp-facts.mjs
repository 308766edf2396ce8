// Makes the facts about SmolLM2 that the test `llama_facts` checks, with llama.cpp: the two largest logits at every step.
//
//     node llama-cpp-facts.mjs FOLDER MODEL > ../tests/data/smollm2_llama_cpp.json
//
// FOLDER is where `npm install --prefix FOLDER node-llama-cpp@3.22.1` has put the package, MODEL what `cargo xtask model smollm2`
// has got. It takes some minutes, and 600 MB in the system's folder for temporary files: the model is looked at as it is, and with
// all its weights as F32, for which a copy of the file is written.

import {mkdtempSync, openSync, closeSync, readFileSync, rmSync, writeSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";

const STEPS = 64;
const SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
const QUESTIONS = [
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Why is the sky blue?",
    "Name three prime numbers above 10.",
    "Explain what a matrix-vector product is, in two sentences."
];
const TEXTS = [
    "Once upon a time, there was a small robot who",
    "def fibonacci(n):\n    \"\"\"Returns the n-th Fibonacci number.\"\"\"\n",
    "The three laws of thermodynamics are:\n1.",
    "Die Hauptstadt von Deutschland ist",
    "In 1969, the first"
];

async function main() {
    const [folder, file] = process.argv.slice(2);
    if (file === undefined)
        throw new Error("a folder and a model are needed");
    const home = resolve(folder, "node_modules", "node-llama-cpp");
    const {version} = JSON.parse(readFileSync(resolve(home, "package.json"), "utf8"));
    const npm = await import(pathToFileURL(resolve(home, "dist", "index.js")).href);
    const llama = await npm.getLlama({
        gpu: false, maxThreads: 1, build: "never", skipDownload: true, progressLogs: false, logLevel: npm.LlamaLogLevel.error
    });
    const asked = (question) =>
        `<|im_start|>system\n${SYSTEM}<|im_end|>\n<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
    const texts = [...QUESTIONS.map(asked), ...TEXTS];
    const temporary = mkdtempSync(join(tmpdir(), "llama-cpp-facts-"));
    try {
        const floats = join(temporary, "f32.gguf");
        writeAsF32(readFileSync(file), floats);
        const f32 = await look(npm, llama, floats, texts);
        const q4 = await look(npm, llama, resolve(file), texts);
        const cases = texts.map((text, i) => ({text, prompt: q4[i].prompt, f32: f32[i].steps, q4_1: q4[i].steps}));
        print(cases, `llama.cpp ${llama.llamaCppRelease.release}, built for the CPU, out of the npm package node-llama-cpp ${version}`);
    } finally {
        rmSync(temporary, {recursive: true});
    }
    await llama.dispose();
}

function print(cases, engine) {
    const head = {
        made_with:
            `llama-cpp-facts.mjs in benches/peers: ${engine}; one thread, keys and values in F32, no flash attention; greedy, each ` +
            "token the largest logit; the logits are raw, to four decimals. `f32`: on the file with all tensors dequantized to F32; " +
            "`q4_1`: on the file as it is",
        format: "steps: token of the largest logit, that logit, token of the second, that logit"
    };
    const lines = Object.entries(head).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},`);
    const rows = cases.map((one) => `    ${JSON.stringify(one)}`).join(",\n");
    process.stdout.write(`{\n${lines.join("\n")}\n  "cases": [\n${rows}\n  ]\n}\n`);
}

/** Tokens of each text, and what follows them. */
async function look(npm, llama, modelPath, texts) {
    const model = await llama.loadModel({modelPath});
    const found = [];
    for (const text of texts) {
        const prompt = model.tokenize(text, true);
        const context = await model.createContext({
            contextSize: prompt.length + STEPS, threads: 1, sequences: 1, flashAttention: false,
            experimentalKvCacheKeyType: npm.GgmlType.F32, experimentalKvCacheValueType: npm.GgmlType.F32
        });
        found.push({prompt: Array.from(prompt), steps: await follow(context.getSequence(), prompt)});
        await context.dispose();
    }
    await model.dispose();
    return found;
}

async function follow(sequence, prompt) {
    const ask = {generateNext: {logits: {filter: {tokens: [], includeTop: 2}}}};
    const steps = [];
    let tokens = prompt;
    while (steps.length < STEPS) {
        const input = tokens.map((token, i) => (i === tokens.length - 1 ? [token, ask] : token));
        const {next} = (await sequence.controlledEvaluate(input)).at(-1);
        const [first, second] = next.logits.entries();
        const rounded = ([token, logit]) => [token, Number(logit.toFixed(4))];
        steps.push([...rounded(first), ...rounded(second)]);
        tokens = [first[0]];
    }
    return steps;
}

/** Types of tensors as GGUF numbers them: elements of a block, its bytes, and what its elements are as F32. */
const TYPES = new Map([
    [0, {length: 1, bytes: 4, widen: (block) => [block.readFloatLE(0)]}],
    [3, {
        length: 32, bytes: 20, widen: (block) => {
            const [scale, least] = [half(block.readUInt16LE(0)), half(block.readUInt16LE(2))];
            const quant = (i) => (i < 16 ? block[4 + i] & 15 : block[4 + i - 16] >> 4);
            return Array.from({length: 32}, (_, i) => Math.fround(Math.fround(scale * quant(i)) + least));
        }
    }],
    [8, {
        length: 32, bytes: 34, widen: (block) => {
            const scale = half(block.readUInt16LE(0));
            return Array.from({length: 32}, (_, i) => Math.fround(scale * block.readInt8(2 + i)));
        }
    }]
]);

function half(bits) {
    const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, bits >> 10 & 31, bits & 1023];
    if (exponent === 31)
        throw new Error("a scale that is no number");
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** Writes a GGUF file once more, with the same metadata and every tensor as F32. */
function writeAsF32(file, target) {
    const {tensors, infos, dataStart, alignment} = readHeader(file);
    const padding = (at) => Buffer.alloc((alignment - at % alignment) % alignment);
    let offset = 0;
    const written = tensors.map(({name, dims, count}) => {
        const info = Buffer.alloc(8 + name.length + 4 + 8 * dims.length + 4 + 8);
        let at = info.writeBigUInt64LE(BigInt(name.length));
        at += name.copy(info, at);
        at = info.writeUInt32LE(dims.length, at);
        for (const dim of dims)
            at = info.writeBigUInt64LE(dim, at);
        at = info.writeUInt32LE(0, at);
        info.writeBigUInt64LE(BigInt(offset), at);
        offset += 4 * count + padding(4 * count).length;
        return info;
    });
    const out = openSync(target, "wx");
    const head = Buffer.concat([file.subarray(0, infos), ...written]);
    writeSync(out, head);
    writeSync(out, padding(head.length));
    for (const {type, count, start} of tensors) {
        const {length, bytes, widen} = TYPES.get(type);
        const floats = new Float32Array(count);
        for (let block = 0; block < count / length; block++)
            floats.set(widen(file.subarray(dataStart + start + block * bytes, dataStart + start + (block + 1) * bytes)), block * length);
        writeSync(out, new Uint8Array(floats.buffer));
        writeSync(out, padding(4 * count));
    }
    closeSync(out);
}

/** Where the descriptions of tensors begin, what they say, and where the data begins. */
function readHeader(file) {
    if (file.toString("latin1", 0, 4) !== "GGUF" || file.readUInt32LE(4) !== 3)
        throw new Error("no GGUF file of version 3");
    let at = 24;
    const u32 = () => file.readUInt32LE((at += 4) - 4);
    const u64 = () => file.readBigUInt64LE((at += 8) - 8);
    const string = () => {
        const length = Number(u64());
        return file.subarray(at, at += length);
    };
    const sizes = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
    const skip = (type) => {
        if (type === 8)
            string();
        else if (type === 9) {
            const [inner, length] = [u32(), Number(u64())];
            for (let i = 0; i < length; i++)
                skip(inner);
        } else if (sizes[type] === undefined)
            throw new Error(`a value of type ${type}`);
        else
            at += sizes[type];
    };
    let alignment = 32;
    for (let n = Number(file.readBigUInt64LE(16)); n > 0; n--) {
        const key = string().toString("latin1");
        const type = u32();
        if (key === "general.alignment")
            alignment = file.readUInt32LE(at);
        skip(type);
    }
    const infos = at;
    const tensors = Array.from({length: Number(file.readBigUInt64LE(8))}, () => {
        const name = string();
        const dims = Array.from({length: u32()}, u64);
        const [type, start] = [u32(), Number(u64())];
        if (!TYPES.has(type))
            throw new Error(`tensor ${name} is of type ${type}`);
        return {name, dims, type, start, count: Number(dims.reduce((product, dim) => product * dim, 1n))};
    });
    return {tensors, infos, dataStart: at + (alignment - at % alignment) % alignment, alignment};
}

main().then(() => process.exit(0), (error) => {
    console.error(`llama-cpp-facts.mjs: ${String(error?.message ?? error).replaceAll("\n", " ")}`);
    process.exit(1);
});
