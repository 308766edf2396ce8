// Runs a WebAssembly program for WASI: node wasi.mjs PROGRAM [ARGUMENT…]

import { readFile } from "node:fs/promises";
import { argv, exit } from "node:process";
import { WASI } from "node:wasi";

const args = argv.slice(2);
const wasi = new WASI({ version: "preview1", args, returnOnExit: true });
const program = await WebAssembly.compile(await readFile(args[0]));
exit(wasi.start(await WebAssembly.instantiate(program, wasi.getImportObject())));
