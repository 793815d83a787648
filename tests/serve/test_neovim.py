"""The language server in a real Neovim, set up as docs/editors.md says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

NVIM = Path(sys.executable).with_name("nvim")
COMMAND = Path(sys.executable).with_name("citerec")
EDITORS = Path("docs/editors.md")
DRAFT = r"Recurrent networks with gated memory cells learn dependencies across long sequences \cite{?}."
BIB = "@misc{unused, title={Counting lakes in winter}, year=2017}\n"
# Waits for the server, asks what an author would ask, accepts the first paper, and writes what it got.
ASK = """
local function ask(method, more)
  local params = vim.tbl_extend('force', vim.lsp.util.make_position_params(0, 'utf-16'), more or {})
  local answers = vim.lsp.buf_request_sync(0, method, params, 30000) or {}
  for _, answer in pairs(answers) do return answer.result end
end
vim.wait(30000, function() return #vim.lsp.get_clients({ name = 'citerec' }) > 0 end)
vim.api.nvim_win_set_cursor(0, { 1, vim.fn.getline(1):find('?', 1, true) - 1 })
local items = {}
vim.wait(30000, function()
  local found = ask('textDocument/completion') or {}
  items = found.items or found
  return #items > 1
end, 500)
local hover = ask('textDocument/hover')
vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end)
local codes = vim.tbl_map(function(one) return one.code end, vim.diagnostic.get(0))
local params = vim.lsp.util.make_range_params(0, 'utf-16')
params.context = { diagnostics = {}, triggerKind = 1 }
local actions = {}
for _, answer in pairs(vim.lsp.buf_request_sync(0, 'textDocument/codeAction', params, 30000)) do
  actions = answer.result
end
vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
vim.cmd('wall')
vim.fn.writefile({ vim.json.encode({ label = items[1].label, hover = hover.contents.value, codes = codes,
  action = actions[1].title }) }, 'answers.json')
vim.cmd('qall!')
"""
RUN = "local done, fault = pcall(dofile, 'ask.lua'); if not done then io.stderr:write(fault); vim.cmd('cquit!') end"


@pytest.mark.slow
@pytest.mark.skipif(not NVIM.exists(), reason="there is no Neovim")
def test_neovim_completes_hovers_checks_and_cites(tmp_path: Path, demo_index: Path) -> None:
    (draft := tmp_path / "paper.tex").write_text(f"{DRAFT}\n\\bibliography{{refs}}\n")
    (tmp_path / "refs.bib").write_text(BIB)
    (setup,) = re.findall(r"```lua\n(.*?)```", EDITORS.read_text(encoding="utf-8"), re.DOTALL)
    setup = setup.replace("/path/to/indexes/demo", str(demo_index)).replace("'citerec', 'lsp'", f"'{COMMAND}', 'lsp'")
    (tmp_path / "init.lua").write_text(setup)
    (tmp_path / "ask.lua").write_text(ASK)
    command = [NVIM, "--headless", "-i", "NONE", "-n", "-u", "init.lua", draft.name, "-c", f"lua {RUN}"]
    done = subprocess.run(command, cwd=tmp_path, timeout=200, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = json.loads((tmp_path / "answers.json").read_text())
    assert "Hochreiter & Schmidhuber 1997 · Long Short-Term Memory" in answers["label"]
    assert "**Long Short\\-Term Memory**" in answers["hover"] or "Long Short-Term Memory" in answers["hover"]
    assert "place-open" in answers["codes"] and answers["action"].startswith("Cite hochreiter1997long")
    assert r"sequences \cite{hochreiter1997long}." in draft.read_text()
    assert "@misc{hochreiter1997long," in (tmp_path / "refs.bib").read_text()
