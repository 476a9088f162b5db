"""The bash texts that run in the git sandbox.

All data reaches them as variables: ``OUT`` (results), ``BASE``, ``HEAD_AT``, ``WORK``, and so on.
File names are only ever handled NUL-terminated and after ``--``, since a run chose them.
"""

from __future__ import annotations

from typing import Final

STAGE: Final = r"""
# Sets nested to the repositories inside the tree that are neither submodules nor ignored.
find_nested() {
  nested=()
  while IFS= read -r -d '' place; do
    entry=$(GIT_LITERAL_PATHSPECS=1 git ls-files -s -- "$place" | head -c 6 || true)
    [ "$entry" = 160000 ] && continue
    GIT_LITERAL_PATHSPECS=1 git check-ignore -q -- "$place" && continue
    nested+=("$place")
  done < <(find . -mindepth 2 -name .git -prune -print0 |
    while IFS= read -r -d '' dot; do dot=${dot#./}; printf '%s\0' "${dot%/.git}"; done | sort -z)
}

# Puts one nested repository's files into the index as plain files.
take_nested() {
  local place=$1 other tree
  local skip=()
  for other in "${nested[@]}"; do
    case "$other" in "$place"/*) skip+=(":(exclude,literal)${other#"$place"/}") ;; esac
  done
  tree=$(
    cd -- "$place"
    export GIT_WORK_TREE=$PWD GIT_INDEX_FILE="$OUT/nested-index"
    rm -f -- "$GIT_INDEX_FILE"
    git add -A -- . "${skip[@]}"
    git write-tree
  )
  GIT_LITERAL_PATHSPECS=1 git rm -r -q --cached --ignore-unmatch -- "$place"
  [ -z "$(git ls-tree "$tree" | head -c 1)" ] || git read-tree --prefix="$place/" "$tree"
}

# Stages everything below the tree. NESTED: take or skip; STRICT: 1 fails on what git cannot read.
stage() {
  local place
  local skip=()
  cd -- "$GIT_WORK_TREE"
  find_nested
  for place in "${nested[@]}"; do skip+=(":(exclude,literal)$place"); done
  git -c advice.addEmbeddedRepo=false add -A --ignore-errors -- . "${skip[@]}" || [ "$STRICT" != 1 ]
  if [ "$NESTED" = take ]; then
    for place in "${nested[@]}"; do take_nested "$place"; done
  fi
}
"""

READABLE: Final = r"""
# A run may have taken its own files' permissions away; parents come before their children.
if [ -d "$GIT_WORK_TREE" ]; then
  find "$GIT_WORK_TREE" -type d ! -perm -700 -exec chmod u+rwx {} \;
  find "$GIT_WORK_TREE" -type f ! -perm -400 -exec chmod u+r {} +
fi
"""

BUNDLE: Final = r"""
# bundle COMMIT: hands over a commit and what it needs; BORDER is what the project has already.
bundle() {
  git update-ref refs/out/work "$1"
  git bundle create -q "$OUT/bundle" refs/out/work --not $BORDER
}
"""

SNAPSHOT: Final = (
    STAGE
    + BUNDLE
    + r"""
stage
tree=$(git write-tree)
commit=$(git commit-tree "$tree" ${HEAD_AT:+-p "$HEAD_AT"} -F - <<< "$MESSAGE")
bundle "$commit"
printf '%s' "$commit" > "$OUT/commit"
"""
)
"""A commit of the whole tree on ``HEAD_AT``."""

POPULATE: Final = r"""
git read-tree -m -u "$BASE"
"""
"""Fills an empty tree with a commit's files."""

FORK_TIPS: Final = r"""
# fork_tips: every commit the fork made a name for, HEAD first, that the project did not have.
fork_tips() {
  head=$(git --git-dir="$FORK_GIT" rev-parse -q --verify 'HEAD^{commit}' 2>/dev/null || true)
  [ -n "$head" ] && ! git merge-base --is-ancestor "$head" "$BASE" || head=$BASE
  parents=("$head")
  [ "$head" = "$BASE" ] || git merge-base --is-ancestor "$BASE" "$head" || parents+=("$BASE")
  while read -r tip; do
    [ "${#parents[@]}" -lt 50 ] || break
    grep -q -x -F -e "$tip" "$OUT/known" && continue
    [ "$(git cat-file -t "$tip" 2>/dev/null)" = commit ] || continue
    git merge-base --is-ancestor "$tip" "$head" && continue
    parents+=("$tip")
  done < <(
    { git --git-dir="$FORK_GIT" for-each-ref --format='%(objectname)'
      git --git-dir="$FORK_GIT" log -g --format=%H refs/stash -- 2>/dev/null || true
    } | awk '!seen[$0]++'
  )
}
"""

DIFF: Final = r"""
# compare FROM TO: the files and the lines that differ, without any configured program.
compare() {
  git diff-tree -r -M --raw -z --no-ext-diff --no-textconv "$1" "$2" > "$OUT/raw"
  git diff-tree -r -M --numstat -z --no-ext-diff --no-textconv "$1" "$2" > "$OUT/numstat"
  # `head` ends the pipe early on a long diff, which is no failure.
  { git diff-tree -r -M -p --no-color --no-ext-diff --no-textconv --src-prefix=a/ \
      --dst-prefix=b/ "$1" "$2" || true; } | head -c "$DIFF_BYTES" > "$OUT/lines"
}
"""

COMPARE: Final = DIFF + 'compare "$BASE" "$WORK"\n'
"""The difference of two commits."""

LIVE: Final = (
    STAGE
    + DIFF
    + r"""
stage
compare "$BASE" "$(git write-tree)"
"""
)
"""The difference of a running fork's tree from its base."""

COLLECT: Final = (
    READABLE
    + STAGE
    + BUNDLE
    + FORK_TIPS
    + DIFF
    + r"""
fork_tips
if [ -d "$GIT_WORK_TREE" ]; then
  stage
  tree=$(git write-tree)
else
  tree=$(git rev-parse "$head^{tree}")
fi
printf '%s' "$tree" > "$OUT/tree"
base_tree=$(git rev-parse "$BASE^{tree}")
if [ "$tree" = "$base_tree" ] && [ "${parents[*]}" = "$BASE" ]; then
  : > "$OUT/commit"
  exit 0
fi
work=
if [ -n "$LAST" ] && [ "$(git rev-parse "$LAST^{tree}")" = "$tree" ]; then
  before=$(git rev-parse "$LAST^@" | tr '\n' ' ')
  [ "$before" = "${parents[*]} " ] && work=$LAST
fi
if [ -z "$work" ]; then
  options=()
  for parent in "${parents[@]}"; do options+=(-p "$parent"); done
  work=$(git commit-tree "$tree" "${options[@]}" -F - <<< "$MESSAGE")
  bundle "$work"
fi
git rev-list --count "$head" --not "$BASE" > "$OUT/commits"
compare "$BASE" "$work"
git diff-tree -r -p --binary --full-index --no-color --no-ext-diff --no-textconv \
  "$BASE" "$work" > "$OUT/patch"
printf '%s' "$work" > "$OUT/commit"
"""
)
"""All work of a fork as one commit: ``OUT/commit`` is empty when nothing changed."""

RAW: Final = r"""
# From here on bytes are stored and written exactly as they are.
use_raw() {
  if [ -e "$GIT_DIR/info/attributes" ] && [ ! -e "$GIT_DIR/info/attributes.usual" ]; then
    mv "$GIT_DIR/info/attributes" "$GIT_DIR/info/attributes.usual"
  fi
  cp "$GIT_DIR/info/attributes.raw" "$GIT_DIR/info/attributes"
}
use_usual() {
  rm -f "$GIT_DIR/info/attributes"
  [ ! -e "$GIT_DIR/info/attributes.usual" ] ||
    mv "$GIT_DIR/info/attributes.usual" "$GIT_DIR/info/attributes"
}
# raw_tree LIST INDEX: the tree of the listed files as they stand on the disk.
raw_tree() {
  rm -f -- "$2"
  cd -- "$GIT_WORK_TREE"
  GIT_INDEX_FILE=$2 git -c core.autocrlf=false -c core.safecrlf=false \
    update-index -z --add --remove --stdin < "$1"
  GIT_INDEX_FILE=$2 git write-tree
}
# differences FROM TO: what a change of trees touches, renames told apart.
differences() {
  git diff-tree -r --no-renames --raw -z "$1" "$2" > "$OUT/raw"
  git diff-tree -r --no-renames --numstat -z --no-ext-diff --no-textconv "$1" "$2" \
    > "$OUT/numstat"
}
"""

PLAN: Final = (
    STAGE
    + BUNDLE
    + RAW
    + r"""
stage
tree=$(git write-tree)
printf '%s' "$tree" > "$OUT/tree"
: > "$OUT/conflicts"
if [ -n "$WORK" ]; then
  now=$(git commit-tree "$tree" -p "$BASE" -m now)
  work=$(git commit-tree "$(git rev-parse "$WORK^{tree}")" -p "$BASE" -m work)
  code=0
  git merge-tree --write-tree -z --name-only --no-messages "$now" "$work" > "$OUT/merge" || code=$?
  [ "$code" -le 1 ] || exit "$code"
  IFS= read -r -d '' merged < "$OUT/merge"
  if [ "$code" = 1 ]; then
    tail -c "+$((${#merged} + 2))" "$OUT/merge" > "$OUT/conflicts"
  fi
else
  merged=$(git rev-parse "$TARGET^{tree}")
fi
printf '%s' "$merged" > "$OUT/merged"
differences "$tree" "$merged"
[ ! -s "$OUT/conflicts" ] || exit 0
git diff-tree -r --no-renames -z --name-only --diff-filter=DMT "$tree" "$merged" \
  > "$OUT/before.paths"
git diff-tree -r --no-renames -z --name-only --diff-filter=AMT "$tree" "$merged" \
  > "$OUT/after.paths"
use_raw
before=$(raw_tree "$OUT/before.paths" "$OUT/before-index")
use_usual
printf '%s' "$before" > "$OUT/before"
snapshot=$(git commit-tree "$tree" ${HEAD_AT:+-p "$HEAD_AT"} -m 'forkdeck: tree before a change')
printf '%s' "$snapshot" > "$OUT/snapshot"
undo=$(git commit-tree "$before" -p "$snapshot" -F - <<< "$MESSAGE")
bundle "$undo"
printf '%s' "$undo" > "$OUT/commit"
"""
)
"""What a change would do to the parent's tree: conflicts, or the differences and an undo commit.

With ``WORK`` a 3-way merge over ``BASE``, by two synthetic commits; else the tree of ``TARGET``.
"""

CHANGE: Final = (
    BUNDLE
    + RAW
    + r"""
tree=$(cat "$OUT/tree") merged=$(cat "$OUT/merged")
before=$(cat "$OUT/before") snapshot=$(cat "$OUT/snapshot")
cd -- "$GIT_WORK_TREE"
printf 'changed' > "$OUT/outcome"
if ! git read-tree -m -u "$tree" "$merged" 2> "$OUT/why"; then
  if grep -q -e 'Cannot merge' -e 'not uptodate' -e 'would be overwritten' -e 'would lose' \
      -e 'would be removed' "$OUT/why"; then
    printf 'refused' > "$OUT/outcome"
    exit 0
  fi
  # It broke while it wrote: put back what was there.
  printf 'broken' > "$OUT/outcome"
  sort -z -u "$OUT/before.paths" "$OUT/after.paths" > "$OUT/all.paths"
  use_raw
  current=$(raw_tree "$OUT/all.paths" "$OUT/back-index") || exit 0
  GIT_INDEX_FILE=$OUT/back-index git -c core.autocrlf=false \
    read-tree -m -u "$current" "$before" || exit 0
  printf 'put back' > "$OUT/outcome"
  exit 0
fi
use_raw
after=$(git commit-tree "$(raw_tree "$OUT/after.paths" "$OUT/after-index")" -m after)
undo=$(git commit-tree "$before" -p "$snapshot" -p "$after" -F - <<< "$MESSAGE")
bundle "$undo"
printf '%s' "$undo" > "$OUT/commit"
"""
)
"""Writes the planned change, then completes the undo commit with what now stands there."""

CHECK_BACK: Final = (
    RAW
    + r"""
before=$(git rev-parse "$UNDO^{tree}")
after=$(git rev-parse "$UNDO^2^{tree}")
git ls-tree -r -z --name-only "$after" > "$OUT/after.paths"
use_raw
: > "$OUT/moved"
differences "$after" "$before"
if ! current=$(raw_tree "$OUT/after.paths" "$OUT/back-index" 2> "$OUT/why"); then
  cp "$OUT/after.paths" "$OUT/moved"
elif [ "$current" != "$after" ]; then
  git diff-tree -r --no-renames -z --name-only "$current" "$after" > "$OUT/moved"
fi
"""
)
"""Compares the files a change left with those on the disk, and says what an undo would touch."""

TAKE_BACK: Final = (
    BUNDLE
    + r"""
before=$(git rev-parse "$UNDO^{tree}")
after=$(git rev-parse "$UNDO^2^{tree}")
cd -- "$GIT_WORK_TREE"
GIT_INDEX_FILE=$OUT/back-index git -c core.autocrlf=false read-tree -m -u "$after" "$before"
old=$(git commit-tree "$before" -m after)
redo=$(git commit-tree "$after" -p "$UNDO^1" -p "$old" -F - <<< "$MESSAGE")
bundle "$redo"
printf '%s' "$redo" > "$OUT/commit"
"""
)
"""Puts back, byte for byte, what stood before a change; `CHECK_BACK` ran in the same scratch."""

PICK: Final = (
    BUNDLE
    + r"""
: > "$OUT/conflicts"
: > "$OUT/commit"
onto=$HEAD_AT
while read -r commit; do
  [ -n "$commit" ] || continue
  from=$(git commit-tree "$(git rev-parse "$commit^1^{tree}")" -m from)
  ours=$(git commit-tree "$(git rev-parse "$onto^{tree}")" -p "$from" -m ours)
  theirs=$(git commit-tree "$(git rev-parse "$commit^{tree}")" -p "$from" -m theirs)
  code=0
  git merge-tree --write-tree -z --name-only --no-messages "$ours" "$theirs" > "$OUT/merge" ||
    code=$?
  [ "$code" -le 1 ] || exit "$code"
  IFS= read -r -d '' merged < "$OUT/merge"
  if [ "$code" = 1 ]; then
    tail -c "+$((${#merged} + 2))" "$OUT/merge" > "$OUT/conflicts"
    exit 0
  fi
  [ "$merged" != "$(git rev-parse "$onto^{tree}")" ] || continue
  onto=$(
    GIT_AUTHOR_NAME=$(git log -1 --no-mailmap --format=%an "$commit")
    GIT_AUTHOR_EMAIL=$(git log -1 --no-mailmap --format=%ae "$commit")
    GIT_AUTHOR_DATE=$(git log -1 --date=raw --format=%ad "$commit")
    export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE
    git cat-file commit "$commit" | sed '1,/^$/d' | git commit-tree "$merged" -p "$onto" -F -
  )
done < <(git rev-list --reverse --topo-order --no-merges "$WORK" --not "$BASE")
[ "$onto" != "$HEAD_AT" ] || exit 0
bundle "$onto"
printf '%s' "$onto" > "$OUT/commit"
"""
)
"""Builds the fork's commits anew on ``HEAD_AT``; ``OUT/commit`` is empty when nothing is new."""

MOVE_INDEX: Final = r"""
: > "$OUT/refused"
git read-tree -i -m "$FROM" "$TO" 2>> "$OUT/why" || printf 'refused' > "$OUT/refused"
"""
"""Moves a copy of the index from one commit to another, staged changes kept."""
