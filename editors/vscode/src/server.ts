// How the language server is started, and what it says of papers: without VS Code, so that tests can use it.

/** The settings of the extension. */
export interface Settings {
  command: string;
  index: string;
  online: boolean;
  arguments: string[];
}

/** A paper for a place or a sentence, as the request `citerec/recommend` answers. */
export interface Paper {
  key: string;
  label: string;
  verdict: "sure" | "likely" | "weak" | null;
  isNew: boolean;
  /** What is known of it, as Markdown. */
  about: string;
  /** The edit that cites it, as the protocol writes it. */
  edit: unknown;
}

/** The request of the papers at a position. */
export const PAPERS = "citerec/recommend";

/** The languages of drafts and bibliographies. */
export const LANGUAGES = ["latex", "tex", "markdown", "quarto", "typst", "org", "bibtex"];

/** The arguments with which the server is started. */
export function serverArguments(settings: Settings): string[] {
  const index = settings.index ? ["--index", settings.index] : [];
  return ["lsp", ...index, ...(settings.online ? ["--online"] : []), ...settings.arguments];
}

/** A paper in one line: authors, year and title; and what the server says of it. */
export function described(paper: Paper): { label: string; description: string } {
  const parts = [paper.verdict, paper.isNew ? null : "in your bibliography"];
  return { label: paper.label, description: parts.filter(Boolean).join(", ") };
}
