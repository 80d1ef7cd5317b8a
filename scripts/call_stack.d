#!/usr/sbin/dtrace -s
/*
 * call_stack - show the flow of Python calls and returns, indented, with DTrace
 *
 * usage: LD_PRELOAD=SHIM dtrace -s call_stack.d -c 'COMMAND...' [FUNCTION]
 *        dtrace -s call_stack.d -p PID [FUNCTION]   a process that has SHIM loaded
 *
 * SHIM      the path of libpython-stap.so.0
 * COMMAND   the Python itself first, no "env" and no shell; DTrace splits it at
 *           spaces, whatever the quotes
 * FUNCTION  only from the entry of a function of that name to its return
 *
 * It is for DTrace 2.0 for Linux, which needs root, not for the dtrace that comes
 * with sys/sdt.h.  It takes three seconds to start.  Ctrl-C exits.
 *
 * Each line is like those of the call_stack.d in CPython's documentation
 * ("Instrumenting CPython with DTrace and SystemTap"):
 *   nanoseconds, a tab, and
 *   function-entry:file:function:line    a function starts or resumes, at that line
 *   function-return:file:function:line   it returns, yields, awaits or raises, there
 * with a space before the file for each call that is open in the thread.  DTrace
 * prints one CPU's lines after the other's: "sort -n" has them in order.
 *
 * It traces one process, not its children: "python$target" is that of -c or -p.
 * DTrace doesn't accept "python*" for these markers.  For several processes write
 * the clauses for each, with python1234, for example, and give a -p for each.
 *
 * The documentation's script names no module: it shows the interpreter's own
 * markers where they fire, such as function-return of Debian's python3.11, and the
 * shim's for the rest; with that python3.11 alone it shows nothing.  This script
 * takes the shim's markers only.
 *
 * It prints two lines a call, at 10 microseconds each, which slows a program down
 * many times over.  If "drops" are reported on stderr, lines are missing: -b 16m
 * sets larger buffers, for each CPU.
 *
 * SPDX-License-Identifier: MIT
 */

#pragma D option quiet
#pragma D option defaultargs
#pragma D option switchrate=50hz

/* In this thread: open calls, and those of FUNCTION. */
self int indent;
self int within;

/*
 * Return first: DTrace enables the markers in this order, half a second apart,
 * and a return without an entry is ignored.
 */
python$target:libpython-stap.so.0::function-return
/self->within/
{
	self->indent--;
}

python$target:libpython-stap.so.0::function-entry
/$$1 == "" || (arg1 && copyinstr(arg1) == $$1)/
{
	self->within++;
}

/* A name that can't be encoded is NULL. */
python$target:libpython-stap.so.0::function-entry,
python$target:libpython-stap.so.0::function-return
/self->within/
{
	printf("%d\t%*s:", timestamp, 15, probename);
	printf("%*s", self->indent, "");
	printf("%s:%s:%d\n", arg0 ? basename(copyinstr(arg0)) : "",
	    arg1 ? copyinstr(arg1) : "", arg2);
}

python$target:libpython-stap.so.0::function-entry
/self->within/
{
	self->indent++;
}

python$target:libpython-stap.so.0::function-return
/self->within && ($$1 == "" || (arg1 && copyinstr(arg1) == $$1))/
{
	self->within--;
}
