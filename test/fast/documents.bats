# The documents: the README is short and begins with a trace, and what they name and link to is there, in the
# tree and where make install puts them.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need python3
  destdir=$BATS_TEST_TMPDIR/destdir
  docdir=$destdir/usr/local/share/doc/systemtap-cpython
}

# usage: documents links|names FOLDER
documents() {
  timeout -k 5 60 python3 "$top/test/lib/documents.py" "$@"
}

install_them() {
  timeout -k 5 60 make -s -C "$top" DESTDIR="$destdir" install
}

# The documents below a folder, by their first lines.
titles() {
  find "$1" \( -name .git -o -path "$top/build" \) -prune -o -type f -name '*.md' -exec head -qn 1 {} + | sort
}

# A document in a folder of its own, of the lines on stdin, with a Makefile and a file beside it.
document() {
  folder=$BATS_TEST_TMPDIR/tree
  mkdir -p "$folder/test"
  printf 'help:\ncheck-it:\n' >"$folder/Makefile"
  printf '# Title of it\n' >"$folder/test/other.md"
  cat >"$folder/README.md"
}

@test "the README has at most 150 lines, and a real trace of a running service on its first screen" {
  [ "$(wc -l <"$top/README.md")" -le 150 ]
  head -n 30 "$top/README.md" | grep -E '^ +CALLS +TIME.us. +FUNCTION +FILE$'
  # of all workers: which of them a request goes to is not known before
  head -n 40 "$top/README.md" | grep -E '^\$ sudo stap-python attach --name gunicorn( |$)'
  head -n 40 "$top/README.md" | grep -cE '^[0-9]+: active: ' | grep -qx '[3-9]'
  head -n 40 "$top/README.md" | grep -E '^\$ sudo stap-python pycalls( +#|$)'
}

@test "no link of a document leads nowhere, and no anchor" {
  documents links "$top"
}

@test "all documents are installed, and no link leads nowhere there" {
  install_them
  documents links "$destdir"
  diff <(titles "$top") <(titles "$destdir")
  # the same from docdir, by the names that the tree has
  [ -e "$docdir/scripts/exporter/README.md" ]
  rm "$docdir/probes/SECURITY.md" "$docdir/scripts/README.md"
  run documents links "$destdir"
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"README.md:"*": probes/SECURITY.md"* ]]
  [[ $output == *"README.md:"*": scripts/README.md"* ]]
}

@test "every path and every make target that a document names is there" {
  documents names "$top"
}

@test "a broken link and a broken anchor are named, with their lines" {
  document <<'MD'
# One's own `title`, twice

[here](#ones-own-title-twice), [there](test/other.md#title-of-it), [elsewhere](https://example.org/none)
`[no](link)`
```
[nor](this)
```
[lost](test/none.md)
[a](test/other.md) and [b](test/other.md#title)
[c](#title)
MD
  run documents links "$folder"
  echo "$output"
  [ "$status" = 1 ]
  diff - <(echo "$output") <<'SAID'
README.md:8: test/none.md
README.md:9: test/other.md#title
README.md:10: #title
SAID
}

@test "a path and a make target that are not there are named, with their lines" {
  document <<'MD'
# Title

`make check-it` and `make X=y help`, `test/other.md`, `test/NAME.md --help`, `build/any`, `/usr/none`, `make check-NAME`
make it so, and test/none in plain text
`sh test/none/run
--help`, `make check-none`
```
$ make X="a b" check-less
/src/test/any
test/less/run ARGS
```
`tset/other.md`
MD
  run documents names "$folder"
  echo "$output"
  [ "$status" = 1 ]
  diff - <(sort -t: -k2n <<<"$output") <<'SAID'
README.md:5: test/none/run
README.md:6: make check-none
README.md:7: make check-less
README.md:7: test/less/run
README.md:12: tset/other.md
SAID
}
