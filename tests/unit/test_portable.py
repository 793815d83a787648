"""Nothing that only Linux has, unless the code asks first: citerec is meant for Windows and macOS too."""

import re

from tests.conftest import ROOT

NEVER = re.compile(
    r"renameat2|/proc/|os\.fork\b|os\.killpg|os\.get[eu]+id|import (?:fcntl|pwd|grp|termios)\b|posix_fallocate"
    r"|signal\.SIG(?:KILL|HUP|ALRM|USR)|add_signal_handler|AF_UNIX|preexec_fn|start_new_session|O_DIRECTORY"
)
ASKED_FOR = ("pthread_sigmask", "sched_getaffinity")


def test_what_only_some_systems_have_is_not_used_or_asked_for() -> None:
    for path in (ROOT / "citerec").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not (found := NEVER.search(text)), f"{path.relative_to(ROOT)}: {found and found[0]}"
        assert (
            "import resource\n" not in text or '    if sys.platform == "linux":\n        import resource\n' in text
        ), path
        for name in ASKED_FOR:
            assert f".{name}" not in text or f'"{name}")' in text, f"{path.relative_to(ROOT)}: {name}"


def test_files_are_opened_with_an_encoding() -> None:
    """Windows would take another one than UTF-8."""
    for path in (ROOT / "citerec").rglob("*.py"):
        for call in re.findall(
            r"(?<!values)\.(?:read_text|write_text)\([^()]*(?:\([^()]*\)[^()]*)*\)", path.read_text("utf-8")
        ):
            assert "utf-8" in call or "encoding" in call, f"{path.relative_to(ROOT)}: {call}"
