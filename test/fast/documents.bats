# The documents: the README is short and begins with a trace; what the documents name and link to exists, in the tree
# and where make install puts them.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is awk's, and backticks of documents

load ../lib/helper

setup() {
  need python3
  destdir=$BATS_TEST_TMPDIR/destdir
  docdir=$destdir/usr/local/share/doc/systemtap-cpython
}

# usage: documents links|names FOLDER
documents() {
  timeout -k 5 $((60 * SLOW)) python3 "$top/test/lib/documents.py" "$@"
}

install_them() {
  timeout -k 5 $((60 * SLOW)) make -s -C "$top" DESTDIR="$destdir" install
}

# The first lines of the documents below a folder.
titles() {
  find "$1" \( -name .git -o -path "$top/build" \) -prune -o -type f -name '*.md' -exec head -qn 1 {} + | sort
}

# Makes a document of the lines on stdin in a folder of its own, with a Makefile and another document: $folder.
document() {
  folder=$BATS_TEST_TMPDIR/tree
  mkdir -p "$folder/test"
  printf 'help:\ncheck-it:\n' >"$folder/Makefile"
  printf '# Title of it\n' >"$folder/test/other.md"
  cat >"$folder/README.md"
}

@test "the README has at most 150 lines of 120 columns and cells of 60, and four traces on its first screen" {
  local command
  [ "$(wc -l <"$top/README.md")" -le 150 ]
  refute env LC_ALL=C.UTF-8 grep -nE '^.{121}' "$top/README.md"
  refute awk -F '|' '/^[|]/ { for (i = 2; i < NF; i++) if (length($i) > 62) { print FNR ":" $i; n++ } } END { exit !n }' "$top/README.md"
  head -n 46 "$top/README.md" >"$BATS_TEST_TMPDIR/screen"
  for command in record pygil pyrequest pytasks; do
    grep -E "^\\$ sudo stap-python $command " "$BATS_TEST_TMPDIR/screen"
  done
  grep -E '^!\[.+\]\(scripts/pywall_example.png\)$' "$BATS_TEST_TMPDIR/screen"
  grep -E '^ +WAITED.us. +TOTAL.us. +FUNCTION$' "$BATS_TEST_TMPDIR/screen"
  grep -E '^ +HELD.us. +TOTAL.us. +FUNCTION$' "$BATS_TEST_TMPDIR/screen"
  grep -E '^ SHARE +MEDIAN.us. +SLOWEST.us. +DIFFERENCE.us. +CAUSE$' "$BATS_TEST_TMPDIR/screen"
  grep -E '^ TASKS +STEPS +RUN.us. +LOOP.us. ' "$BATS_TEST_TMPDIR/screen"
}

@test "CONTRIBUTING.md has a line for each script, and the files that these lines name are there" {
  local script file
  cd "$top"
  sed -n '/^## Which files a script goes through/,$p' CONTRIBUTING.md >"$BATS_TEST_TMPDIR/list"
  for script in scripts/*.stp scripts/exporter/*.stp; do
    file=${script#scripts/}
    grep -q "^| ${file%.stp} |" "$BATS_TEST_TMPDIR/list" || { echo "no line of $script" && return 1; }
  done
  project_files >"$BATS_TEST_TMPDIR/files"
  grep -oE '`[a-z0-9_/]+\.(c|h|py|stp|stpm|stp\.in|bats|d)`' "$BATS_TEST_TMPDIR/list" | tr -d '`' | sort -u >"$BATS_TEST_TMPDIR/named"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -gt 40 ]
  while read -r file; do
    grep -qE "(^|/)${file//./[.]}$" "$BATS_TEST_TMPDIR/files" || { echo "there is no $file" && return 1; }
  done <"$BATS_TEST_TMPDIR/named"
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
  rm "$docdir/SECURITY.md" "$docdir/scripts/README.md"
  run documents links "$destdir"
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"README.md:"*": SECURITY.md"* ]]
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

@test "the releases that were run are of each supported version of CPython" {
  local minor versions=probes/shared/versions.h
  cd "$top"
  for minor in $(seq "$(grep -oP 'CPYTHON_OLDEST_MINOR = \K\d+' $versions)" "$(grep -oP 'CPYTHON_NEWEST_MINOR = \K\d+' $versions)"); do
    echo "3.$minor"
    sed '1,/^## Which releases were run/d' probes/LIMITS.md | grep -qE "^\| 3\.$minor \| 3\.$minor\.[0-9]+"
  done
}

@test "the documents have the supported versions of CPython" {
  local layout=probes/shared/versions.h oldest newest document missing=''
  cd "$top"
  oldest=$(grep -oE 'CPYTHON_OLDEST_MINOR[ =]+[0-9]+' "$layout" | grep -oE '[0-9]+$')
  newest=$(grep -oE 'CPYTHON_NEWEST_MINOR[ =]+[0-9]+' "$layout" | grep -oE '[0-9]+$')
  echo "from 3.$oldest to 3.$newest"
  [ "$oldest" -ge 6 ]
  [ "$newest" -ge "$oldest" ]
  for document in README.md {packaging,probes}/README.md packaging/{debian/control,rpm/systemtap-cpython.spec} tapset/overview.3stap \
    probes/stap-python/stap-python.8; do
    tr -s ' \n' ' ' <"$document" | grep -qE "3\.$oldest to 3\.$newest\b" || missing+=" $document"
  done
  echo "they lack \"3.$oldest to 3.$newest\":$missing"
  [ -z "$missing" ]
}

@test "the packages are for the architectures that the checks run on, and the documents have the same" {
  cd "$top"
  local document
  {
    echo amd64
    test/long/architectures/run --list | sed '1,/^package$/d'
  } | sort >"$BATS_TEST_TMPDIR/architectures"
  sed -n 's/^Architecture: //p' packaging/debian/control | grep -vx all | sort -u >"$BATS_TEST_TMPDIR/packages"
  diff "$BATS_TEST_TMPDIR/architectures" <(tr ' ' '\n' <"$BATS_TEST_TMPDIR/packages" | sort)
  # what RPM calls them: %{ix86} is a list of its own
  sed -e s/amd64/x86_64/ -e s/arm64/aarch64/ -e s/armhf/armv7hl/ -e 's/i386/%{ix86}/' -e s/ppc64el/ppc64le/ \
    "$BATS_TEST_TMPDIR/architectures" | sort |
    diff - <(sed -n 's/^ExclusiveArch: *//p' packaging/rpm/systemtap-cpython.spec | tr ' ' '\n' | sort)
  for document in packaging/README.md test/README.md; do
    sed -n '/^### Architectures/,/^##* [^A]/p' "$document" | grep '^|' | cut -d'|' -f2 | grep -oE '[a-z][a-z0-9_-]+' |
      sed -e s/x86-64/amd64/ -e s/aarch64/arm64/ | grep -vx -e architecture -e ebian | sort -u | diff "$BATS_TEST_TMPDIR/architectures" -
  done
}

# releases FILE: the releases of a changelog, the newest first: version and day.
releases() {
  local version day
  case $1 in
    *.md) sed -n 's/^## \([0-9.]*\) - \(.*\)/\1 \2/p' "$1" ;;
    *.spec) sed -n '/^%changelog/,$s/^\* \(.*\) systemtap-cpython packagers - \(.*\)-1$/\2 \1/p' "$1" ;;
    *) sed -nE 's/^systemtap-cpython \((.*)-1\) .*/\1/p; s/^ -- .*>  //p' "$1" | paste -d' ' - - ;;
  esac | while read -r version day; do
    echo "$version $(date -u -d "$day" +%F)"
  done
}

@test "the changelogs have the same releases of the same days, the newest one is VERSION" {
  cd "$top"
  releases CHANGELOG.md | tee "$BATS_TEST_TMPDIR/releases"
  [ "$(head -n 1 "$BATS_TEST_TMPDIR/releases" | cut -d' ' -f1)" = "$(cat VERSION)" ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/releases")" -ge 2 ]
  diff "$BATS_TEST_TMPDIR/releases" <(releases packaging/debian/changelog)
  diff "$BATS_TEST_TMPDIR/releases" <(releases packaging/rpm/systemtap-cpython.spec)
}
