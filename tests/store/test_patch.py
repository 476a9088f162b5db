"""Unified diffs as git writes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forkdeck.model.work import FileChange
from forkdeck.store.patch import parse_patch
from tests.soak import laws

PATCH = """diff --git a/src/a b.py b/src/a b.py
index 1111111..2222222 100644
--- a/src/a b.py\t
+++ b/src/a b.py\t
@@ -10,3 +10,4 @@ def f():
 ctx
---- not a header
+++ not a header
+new
 end
\\ No newline at end of file
diff --git a/run.sh b/run.sh
new file mode 100755
index 0000000..3333333
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+echo
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
diff --git a/old.py b/new.py
similarity index 100%
rename from old.py
rename to new.py
diff --git a/logo.png b/logo.png
index 1..2 100644
GIT binary patch
literal 4
Lc$@
diff --git a/x b/x
old mode 100644
new mode 100755
diff --git "a/\\303\\244\\tb.txt" "b/\\303\\244\\tb.txt"
new file mode 120000
--- /dev/null
+++ "b/\\303\\244\\tb.txt"
@@ -0,0 +1 @@
+/etc/passwd
\\ No newline at end of file
"""


def test_files_and_counts() -> None:
    diff = parse_patch(PATCH, base="b", commit="c")
    assert diff.files == (
        FileChange(path="src/a b.py", kind="modified", added=2, removed=1),
        FileChange(path="run.sh", kind="added", added=1, removed=0, warning="executable"),
        FileChange(path="gone", kind="deleted", added=0, removed=2),
        FileChange(path="new.py", kind="renamed", added=0, removed=0),
        FileChange(path="logo.png", kind="modified", added=None, removed=None),
        FileChange(path="x", kind="mode", added=0, removed=0, warning="executable"),
        FileChange(path="ä\tb.txt", kind="added", added=1, removed=0, warning="symlink"),
    )
    assert (diff.base, diff.commit, diff.truncated) == ("b", "c", False)


def test_lines_have_their_numbers() -> None:
    lines = parse_patch(PATCH).lines[:8]
    assert [(line.kind, line.text, line.old, line.new) for line in lines] == [
        ("file", "src/a b.py", None, None),
        ("hunk", "@@ -10,3 +10,4 @@ def f():", None, None),
        ("context", "ctx", 10, 10),
        ("removed", "--- not a header", 11, None),
        ("added", "++ not a header", None, 11),
        ("added", "new", None, 12),
        ("context", "end", 12, 13),
        ("note", "No newline at end of file", None, None),
    ]


def test_a_long_diff_is_cut_but_counted() -> None:
    diff = parse_patch(PATCH, limit=4)
    assert len(diff.lines) == 4
    assert diff.truncated
    assert len(diff.files) == 7
    assert diff.files[0].added == 2


@laws(300)
@given(
    st.lists(
        st.sampled_from(
            [*PATCH.split("\n"), "@@ -1 +1 @@", "@@", "diff --git ", 'diff --git "', "+"]
        )
        | st.text(max_size=10),
        max_size=30,
    )
)
def test_anything_is_read(lines: list[str]) -> None:
    parse_patch("\n".join(lines))
