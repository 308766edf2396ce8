// Measures one request on llama.cpp: takes and prints what `bench-runner` does.
//
//     node llama-cpp.mjs FOLDER REQUEST
//
// FOLDER is where `npm install --prefix FOLDER node-llama-cpp` has put the package, which brings llama.cpp built for the CPU; nothing
// is downloaded or built here. Tokens per second are llama.cpp's own (the time in its decode calls, without what Node and the choice of
// a token cost), CPU time is that of the whole process. The package hands out no timings but as lines of a log: without the line that
// is looked for, tokens per second are over the time that passed here, and a note says so. So it does when the text ends early, and
// all numbers are over the tokens that there were.

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

    let log = "";
    const llama = await npm.getLlama({
        gpu: false, maxThreads: request.threads, build: "never", skipDownload: true, progressLogs: false,
        logLevel: npm.LlamaLogLevel.info, logger: (_level, message) => { log += message + "\n"; }
    });
    const measured = await decode(npm, llama, request);
    log = "";
    await measured.context.printTimings();
    const own = ownTiming(log);
    const msPerToken = own ?? measured.ms / measured.nTokens;
    const notes = [];
    if (own === undefined)
        notes.push("the log of llama.cpp had no timing: its tokens per second are with the choice of tokens and what Node costs");
    if (measured.nTokens < request.model.n_tokens)
        notes.push(`llama.cpp ended its text after ${measured.nTokens} of ${request.model.n_tokens} tokens`);
    const report = {
        participants: measured.context.currentThreads,
        isa: "",
        measurements: [
            measurement(request, "tokens_per_s", "tokens/s", "higher", 1e3 / msPerToken),
            measurement(request, "cpu_ms_per_token", "ms", "lower", measured.cpuMs / measured.nTokens)
        ],
        checksums: {},
        notes: [
            `llama.cpp is ${llama.llamaCppRelease.release}, built for the CPU, out of node-llama-cpp ${version}: flash attention ` +
            `${measured.flashAttention}, keys and values in ${measured.cacheType}, a context of ${measured.context.contextSize}, ` +
            `the rest as it is by default${own === undefined ? "" : "; its tokens per second are without the choice of tokens"}`,
            ...notes
        ]
    };
    await llama.dispose();
    console.log(JSON.stringify(report));
}

/** Milliseconds of a token by llama.cpp's own account, if the log has it: the line of passes with one token, not that of the prompt. */
function ownTiming(log) {
    const line = log.split("\n").find((line) => /\beval time\b/.test(line) && !/prompt/.test(line)) ?? "";
    const [, ms, runs] = /=\s*([0-9.]+)\s*ms\s*\/\s*([0-9]+)/.exec(line) ?? [];
    return Number(ms) > 0 && Number(runs) > 0 ? Number(ms) / Number(runs) : undefined;
}

/** Greedy decode: the prompt, then the tokens that count. The first token comes out of the prompt. Tokens that end a text are put in
 * again as all others are. */
async function decode(npm, llama, {model: {file, prompt, n_tokens: nTokens}, threads}) {
    const model = await llama.loadModel({modelPath: resolve(file)});
    const tokens = model.tokenize(prompt);
    const {bos, shouldPrependBosToken} = model.tokens;
    if (shouldPrependBosToken && bos != null && tokens[0] !== bos)
        tokens.unshift(bos);
    const context = await model.createContext({
        contextSize: tokens.length + nTokens, threads, sequences: 1, performanceTracking: true
    });
    let n = -1, start, last;
    const now = () => ({time: performance.now(), cpu: process.cpuUsage()});
    for await (const _token of context.getSequence().evaluate(tokens, {temperature: 0, yieldEogToken: true})) {
        last = now();
        start ??= last;
        n++;
        if (n === nTokens)
            break;
    }
    if (n < 1)
        throw new Error("its text ended before a token was measured");
    const cpu = ({cpu: {user, system}}) => (user + system) / 1e3;
    return {
        context, nTokens: n, ms: last.time - start.time, cpuMs: cpu(last) - cpu(start),
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
