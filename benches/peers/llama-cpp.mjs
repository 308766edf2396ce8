// Measures one request on llama.cpp: takes and prints what `bench-runner` does.
//
//     node llama-cpp.mjs FOLDER REQUEST
//
// FOLDER is where `npm install --prefix FOLDER node-llama-cpp` has put the package, which brings llama.cpp built for the CPU; nothing
// is downloaded or built here. Tokens per second are llama.cpp's own (the time in its decode calls, without what Node and the choice of
// a token cost), CPU time is that of the whole process.

import {pathToFileURL} from "node:url";
import {resolve} from "node:path";
import {readFileSync} from "node:fs";

async function main() {
    const [folder, text] = process.argv.slice(2);
    if (text === undefined)
        throw new Error("a folder and a request are needed");
    const request = JSON.parse(text);
    if (request.suite !== "model" || request.model === undefined)
        throw new Error(`llama.cpp runs no suite ${request.suite}: it decodes a model's file`);
    const home = resolve(folder, "node_modules", "node-llama-cpp");
    const {version} = JSON.parse(readFileSync(resolve(home, "package.json"), "utf8"));
    const npm = await import(pathToFileURL(resolve(home, "dist", "index.js")).href);

    // The log has the timings, which come as text only.
    let log = "";
    const llama = await npm.getLlama({
        gpu: false, maxThreads: request.threads, build: "never", skipDownload: true, progressLogs: false,
        logLevel: npm.LlamaLogLevel.info, logger: (_level, message) => { log += message + "\n"; }
    });
    const measured = await decode(npm, llama, request);
    log = "";
    await measured.context.printTimings();
    const timing = /(?<!prompt )eval time\s*=\s*([0-9.]+) ms \/\s*([0-9]+) runs/.exec(log);
    if (timing === null || Number(timing[2]) !== request.model.n_tokens)
        throw new Error(`no timing of ${request.model.n_tokens} tokens: ${log.trim().replaceAll("\n", "; ")}`);
    const rate = 1e3 * request.model.n_tokens / Number(timing[1]);
    const report = {
        participants: measured.context.currentThreads,
        isa: "",
        measurements: [
            measurement(request, "tokens_per_s", "tokens/s", "higher", rate),
            measurement(request, "cpu_ms_per_token", "ms", "lower", measured.cpuMs / request.model.n_tokens)
        ],
        checksums: {},
        notes: [
            `llama.cpp is ${llama.llamaCppRelease.release}, built for the CPU, out of node-llama-cpp ${version}: flash attention ` +
            `${measured.flashAttention}, keys and values in ${measured.cacheType}, a context of ${measured.context.contextSize}, ` +
            "the rest as it is by default; its tokens per second are without the choice of tokens"
        ]
    };
    await llama.dispose();
    console.log(JSON.stringify(report));
}

/** Greedy decode: the prompt, then the tokens that count. The first token comes out of the prompt. */
async function decode(npm, llama, {model: {file, prompt, n_tokens: nTokens}, threads}) {
    const model = await llama.loadModel({modelPath: resolve(file)});
    const tokens = model.tokenize(prompt);
    const context = await model.createContext({
        contextSize: tokens.length + nTokens, threads, sequences: 1, performanceTracking: true
    });
    let n = 0, before, cpu;
    for await (const _token of context.getSequence().evaluate(tokens, {temperature: 0, yieldEogToken: true})) {
        if (n === 0)
            before = process.cpuUsage();
        if (n === nTokens) {
            cpu = process.cpuUsage(before);
            break;
        }
        n++;
    }
    if (cpu === undefined)
        throw new Error(`decode ended after ${n} tokens`);
    return {
        context, cpuMs: (cpu.user + cpu.system) / 1e3,
        flashAttention: context.flashAttention === "auto" ? "auto" : context.flashAttention ? "on" : "off",
        cacheType: npm.GgmlType[context.kvCacheKeyType]
    };
}

function measurement(request, metric, unit, better, value) {
    return {case: caseOf(request), metric, unit, better, value, resolution: 0, samples: [value]};
}

/** The file's name without its ending: what the other backends call it. */
function caseOf({model: {file}}) {
    const name = file.split(/[/\\]/).pop();
    const dot = name.lastIndexOf(".");
    return (dot > 0 ? name.slice(0, dot) : name).toLowerCase();
}

main().then(() => process.exit(0), (error) => {
    console.error(`llama-cpp.mjs: ${String(error?.message ?? error).replaceAll("\n", " ")}`);
    process.exit(1);
});
