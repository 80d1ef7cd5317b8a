# What stap-python writes for browsers, in Chromium.  Pictures: build/browser.
#
# SPDX-License-Identifier: MIT

load ../../lib/helper
load ../../lib/launcher

# Makes a fake stap that writes these samples.
setup() {
  launcher_setup
  type -P chromium >/dev/null || type -P chromium-browser >/dev/null || skip "needs chromium"
  shots=$top/build/browser
  mkdir -p "$shots"
  cd "$BATS_TEST_TMPDIR" || return
  seq -f 'x = %g' 60 >a.py
  cat >stap <<'SH'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat "${STAP%/*}/samples" >"$2"
SH
  chmod +x stap
  export STAP=$BATS_TEST_TMPDIR/stap
  {
    root="python3 ($$/$(id -u));<module> ($PWD/a.py:7)"
    echo "$root;main ($PWD/a.py:21);spin ($PWD/a.py:40) 60"
    echo "$root;main ($PWD/a.py:21);reads ($PWD/a.py:45);vfs_read_[k] 30"
    echo "$root;</script><b>odd ($PWD/b.py:3) 10"
  } >samples
}

# Opens a file and does these steps with it.
# usage: in_browser FILE[#...] STEP...
in_browser() {
  "$(system_python)" "$top/test/long/browser/browser.py" "file://$PWD/$1" "${@:2}"
}

# The frame whose name begins with the text.
frame() {
  echo "[...document.querySelectorAll('#frames > g')].find((g) => g.querySelector('title').textContent.startsWith('$1'))"
}

width() {
  echo "+($(frame "$1")).querySelector('rect').getAttribute('width')"
}

# The steps that try a flame graph.
tried() {
  local all
  all=$(width all)
  echo "see=$(width 'main (') < $all"
  echo "click=$(frame 'main (').querySelector('rect')"
  echo "see=$(width 'main (') === $all && $(width 'spin (') < $all"
  echo "see=getComputedStyle($(frame '</script>')).display === 'none'"
  echo "see=document.getElementById('details').textContent.includes('90 samples, 90.00 %')"
  echo "shot=$shots/$1-zoom.png"
  echo "click=document.getElementById('reset')"
  echo "see=$(width 'main (') < $all && $(width '</script>') > 0"
  echo "answer=^(spin|vfs_)"
  echo "press=Control+f"
  echo "see=document.getElementById('matched').textContent === 'Matched: 90.00 %'"
  echo "see=getComputedStyle($(frame 'spin (').querySelector('rect')).fill === 'rgb(230, 0, 230)'"
  echo "see=getComputedStyle($(frame 'main (').querySelector('rect')).fill !== 'rgb(230, 0, 230)'"
  echo "shot=$shots/$1-search.png"
}

@test "a flame graph zooms by a click, and marks what a search finds" {
  local steps
  launcher record -o x.svg -- python3
  mapfile -t steps < <(tried svg)
  in_browser x.svg "${steps[@]}"
  launcher record --reverse -o r.svg -- python3
  in_browser r.svg "see=$(frame 'spin (').querySelector('rect').getBoundingClientRect().y > $(frame all).querySelector('rect').getBoundingClientRect().y" \
    "shot=$shots/svg-reverse.png"
}

@test "the page with a table has the flame graph, and the table sorts and filters" {
  local steps first='document.querySelector("#functions tbody tr:not([hidden])").textContent' head
  launcher record -o x.html -- python3
  head='[...document.querySelectorAll("#functions th")]'
  mapfile -t steps < <(tried html)
  in_browser x.html "${steps[@]}" "see=$first.includes('spin (')" \
    "click=${head}[2]" "see=$first.startsWith('0') && $first.includes('100.00')" "click=${head}[2]" "see=$first.includes('</script>')" \
    "click=${head}[4]" "see=$first.includes('</script>')" "click=${head}[4]" "see=$first.includes('vfs_read')" \
    "click=document.getElementById('filter')" 'press=ma.n' "see=$first.includes('main (') && $first.includes('90.00')" \
    'see=document.getElementById("found").textContent === "1 of 7"' "shot=$shots/html-table.png"
}

@test "the page of sources shows the hot lines, and folds the others" {
  local row='[...document.querySelectorAll("tr")].find((row) => row.cells[2].textContent === "%s")' at
  launcher record -f sources -o s.html -- python3
  # shellcheck disable=SC2059 # a row by its number
  row_of() { printf "$row" "$1"; }
  at='document.querySelector("details details")'
  in_browser s.html "see=$(row_of 40).cells[0].textContent === '60' && $(row_of 40).cells[3].textContent === 'x = 40'" \
    "see=getComputedStyle($(row_of 40)).backgroundColor === 'rgba(255, 90, 0, 0.7)'" \
    "see=$(row_of 21).cells[1].textContent === '90' && $(row_of 21).cells[0].textContent === ''" \
    "see=!$at.open && !$(row_of 1).checkVisibility()" "shot=$shots/sources.png" \
    "click=$at.querySelector('summary')" "see=$at.open && $(row_of 1).checkVisibility()" \
    "see=Math.abs($(row_of 1).cells[3].getBoundingClientRect().x - $(row_of 40).cells[3].getBoundingClientRect().x) < 2" "shot=$shots/sources-open.png"
}

@test "the graph of a difference has both colours" {
  launcher record -o a.folded -- python3
  sed -i 's/ 60$/ 20/; s/ 30$/ 70/' samples
  launcher record -o b.folded -- python3
  launcher diff -o d.svg a.folded b.folded
  in_browser d.svg "see=$(frame 'spin (').querySelector('rect').getAttribute('fill').endsWith('ff')" \
    "see=$(frame 'vfs_').querySelector('rect').getAttribute('fill').startsWith('#ff')" "shot=$shots/diff.png"
}

@test "speedscope shows our JSON" {
  local release row
  release=$(compgen -G "$shots/speedscope-*/dist/release/index.html") || skip "needs speedscope, which npm fetches"
  launcher record --title 'A title' -o x.json -- python3
  echo "speedscope.loadFileFromBase64('x.json', '$(base64 -w 0 x.json)')" >x.js
  cp -r "${release%/*}" release
  row='[...document.querySelectorAll("tr")].find((row) => row.innerText.includes("%s"))'
  # shellcheck disable=SC2059 # a row by its name
  row_of() { printf "$row" "$1"; }
  in_browser "release/index.html#localProfilePath=$PWD/x.js" 'see=document.title.includes("A title")' "shot=$shots/speedscope.png" \
    "click=[...document.querySelectorAll('div')].find((part) => part.textContent === '🥪Sandwich')" \
    "see=/60[^]*60(\.0+)?%/.test($(row_of 'spin (').innerText)" "see=/90(\.0+)?%/.test($(row_of 'main (').innerText)" "shot=$shots/speedscope-sandwich.png"
}
