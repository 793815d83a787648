// citerec in VS Code: the language server, and a view of the papers for the place or the sentence at the cursor.

import * as vscode from "vscode";
import { LanguageClient, TransportKind } from "vscode-languageclient/node";

import { LANGUAGES, PAPERS, Paper, Settings, described, serverArguments } from "./server";

const PAUSE = 400; // milliseconds without a move of the cursor after which papers are looked for

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const papers = new Papers();
  context.subscriptions.push(
    vscode.window.registerTreeDataProvider("citerec.papers", papers),
    vscode.commands.registerCommand("citerec.refresh", () => papers.find(true)),
    vscode.commands.registerCommand("citerec.insert", insert),
    vscode.commands.registerCommand("citerec.restart", restart),
    vscode.window.onDidChangeTextEditorSelection(() => papers.findSoon()),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("citerec") && restart()),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("citerec") as unknown as Settings;
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient(
    "citerec",
    "citerec",
    { command: settings.command, args: serverArguments(settings), transport: TransportKind.stdio, options: { cwd: folder } },
    { documentSelector: LANGUAGES.flatMap((language) => [{ language, scheme: "file" }, { language, scheme: "untitled" }]) },
  );
  try {
    await client.start();
    await vscode.commands.executeCommand("setContext", "citerec.running", true);
  } catch {
    const install = "Install citerec (pip install citerec), or say in the settings where it is.";
    const answer = await vscode.window.showErrorMessage(`citerec cannot be started. ${install}`, "Settings");
    if (answer) await vscode.commands.executeCommand("workbench.action.openSettings", "citerec.command");
  }
}

async function restart(): Promise<void> {
  await client?.stop();
  await start();
}

/** Cites a paper: its citation goes into the draft, and its entry into the bibliography. */
async function insert(paper: Paper): Promise<void> {
  const edit = await client?.protocol2CodeConverter.asWorkspaceEdit(paper.edit as never);
  if (edit) await vscode.workspace.applyEdit(edit);
}

/** The papers for the place at the cursor; for any other sentence, if they are asked for. */
class Papers implements vscode.TreeDataProvider<Paper> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private papers: Paper[] = [];
  private waiting: NodeJS.Timeout | undefined;
  private turn = 0;

  findSoon(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.find(false), PAUSE);
  }

  async find(isAsked: boolean): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!client || !editor || !LANGUAGES.includes(editor.document.languageId)) return;
    const turn = ++this.turn;
    const document = client.code2ProtocolConverter.asTextDocumentIdentifier(editor.document);
    const position = client.code2ProtocolConverter.asPosition(editor.selection.active);
    const found = await client.sendRequest<Paper[]>(PAPERS, { textDocument: document, position });
    if (turn !== this.turn) return; // the cursor has moved on
    this.papers = found;
    this.changed.fire();
    if (isAsked && !found.length) await vscode.window.showInformationMessage("citerec found no paper for this sentence.");
    if (isAsked && found.length) await vscode.commands.executeCommand("citerec.papers.focus");
  }

  getChildren(): Paper[] {
    return this.papers;
  }

  getTreeItem(paper: Paper): vscode.TreeItem {
    const { label, description } = described(paper);
    const item = new vscode.TreeItem(label);
    item.description = description;
    item.tooltip = new vscode.MarkdownString(paper.about);
    item.iconPath = new vscode.ThemeIcon(paper.verdict === "sure" ? "pass-filled" : paper.verdict === "likely" ? "pass" : "circle-outline");
    return item;
  }
}
