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
 * It is for DTrace 2.0 for Linux, which needs root; sys/sdt.h comes with another
 * program of that name.  It takes three seconds to start.  Ctrl-C ends.
 *
 * Each line is like those of the call_stack.d in CPython's documentation
 * ("Instrumenting CPython with DTrace and SystemTap"):
 *   nanoseconds, a tab, and
 *   function-entry:file:function:line    a function starts or goes on, at that line
 *   function-return:file:function:line   it returns, yields, awaits or raises, there
 * with a space before the file for each call that is open in the thread.  DTrace
 * prints one CPU's lines after the other's: "sort -n" has them in order.
 *
 * It sees one process, not its children: "python$target" is that of the -c or -p.
 * These markers have no "python*" in DTrace.  For several at once write the
 * clauses for each, as python1234, and give a -p for each.
 *
 * The documentation's script names no module: it shows the interpreter's own
 * markers where they fire, as the function-return of Debian's python3.11, and the
 * shim's for the rest; without the shim that python3.11 shows nothing.  This
 * script takes the shim's alone.
 *
 * Two lines a call, at 10 microseconds each: it shows how a program runs, and
 * slows it down many times over.  "drops" on stderr: lines are missing; -b 16m
 * gives larger buffers, for each CPU.
 *
 * SPDX-License-Identifier: MIT
 */

#pragma D option quiet
#pragma D option defaultargs
#pragma D option switchrate=50hz

/* In this thread: open calls, and how many of them are of FUNCTION. */
self int indent;
self int within;

/*
 * Return first: DTrace switches the markers on in this order, half a second
 * apart, and a return of a call whose entry was not seen is passed over.
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
