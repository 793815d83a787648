// The language server, started as the extension starts it: CITEREC is the command, INDEX the index.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { StreamMessageReader, StreamMessageWriter, createMessageConnection } from "vscode-jsonrpc/node";

import { PAPERS, Paper, described, serverArguments } from "../server";

const TEXT = "Attention alone suffices to translate sentences.\n\\bibliography{refs}\n";
const settings = { command: process.env.CITEREC ?? "citerec", index: process.env.INDEX ?? "", online: false, arguments: [] };

test("settings become arguments", () => {
  const given = { ...settings, index: "a b", online: true, arguments: ["--keys", "{auth}"] };
  assert.deepEqual(serverArguments(given), ["lsp", "--index", "a b", "--online", "--keys", "{auth}"]);
});

test("the server tells the papers for a sentence", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "citerec-"));
  const file = join(folder, "paper.tex");
  writeFileSync(file, TEXT);
  writeFileSync(join(folder, "refs.bib"), "");
  const uri = pathToFileURL(file).href;
  const server = spawn(settings.command, serverArguments(settings), { cwd: folder });
  const connection = createMessageConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));
  const isOpen = new Promise<void>((resolve) => {
    connection.onNotification("window/logMessage", ({ message }) => message.includes("has opened") && resolve());
  });
  connection.listen();
  const { capabilities } = await connection.sendRequest<{ capabilities: Record<string, unknown> }>("initialize", {
    processId: null,
    rootUri: null,
    capabilities: { workspace: { workspaceEdit: { documentChanges: true } } },
  });
  assert.ok(capabilities.completionProvider && capabilities.definitionProvider && capabilities.renameProvider);
  await connection.sendNotification("initialized", {});
  await isOpen;
  await connection.sendNotification("textDocument/didOpen", {
    textDocument: { uri, languageId: "latex", version: 1, text: TEXT },
  });
  const papers = await connection.sendRequest<Paper[]>(PAPERS, { textDocument: { uri }, position: { line: 0, character: 9 } });
  assert.match(papers[0].label, /^Vaswani et al. 2017 · Attention Is All You Need$/);
  assert.ok(described(papers[0]).label === papers[0].label && JSON.stringify(papers[0].edit).includes("\\cite{vaswani2017attention}"));
  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  connection.dispose();
});
