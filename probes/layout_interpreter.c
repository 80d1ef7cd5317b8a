/*
 * See layout_interpreter.h.
 *
 * The GIL is found by what it must have in it while this thread holds it, in the memory that the
 * dynamic linker says is CPython's.  In a free-threaded build there is one, too, which may be off,
 * and on later, when a module is imported that needs it: it is found by what it has in it then.
 *
 * SPDX-License-Identifier: MIT
 */
#include "layout_interpreter.h"

#include "cpython_layout.h"
#include "debug.h"
#include "layout_values.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

static struct offsets_page *page;

/* The one among so many words of an object that is this; 0: none or several, or the first. */
static size_t find_word(const void *object, size_t words, const void *wanted)
{
    size_t found = 0;
    for (size_t at = 1; at < words; at++) {
        if (read_word(object, (unsigned)(at * sizeof(void *))) != wanted)
            continue;
        if (found)
            return 0;
        found = at;
    }
    return found * sizeof(void *);
}

/* From 3.12 on the main interpreter's state is in _PyRuntime, and has more words than are looked
 * at. */
static bool find_modules(const PyInterpreterState *interpreter)
{
    const void *modules = py.PyImport_GetModuleDict();
    size_t offset = py.minor <= 11 ? interpreter_modules_offset(py.minor)
                                   : find_word(interpreter, INTERPRETER_WORDS, modules);
    if (!offset || read_word(interpreter, (unsigned)offset) != (const char *)modules)
        return false;
    page->interp_modules = (uint32_t)offset;
    return true;
}

/* ---------------------------------------------------------------- the GIL */

/* The type of a dict, from which distances are: nothing of the program is at its address, as long
 * as it is in the same file as what it leads to. */
static const char *dict_type(void)
{
    return (const char *)cpython_type(py.PyImport_GetModuleDict());
}

static bool is_beside_dict_type(const void *other)
{
    Dl_info one, two;
    return dladdr(dict_type(), &one) && dladdr(other, &two) && one.dli_fbase == two.dli_fbase;
}

/* A part of CPython's file that holds its variables. */
struct part {
    const char *start;
    size_t size;
};

/* That in which the type of a dict is. */
static int on_file(struct dl_phdr_info *info, size_t size, void *data)
{
    struct part *found = data;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *start = (const char *)info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && part->p_flags & PF_W && dict_type() >= start &&
            dict_type() < start + part->p_memsz)
            *found = (struct part){start, part->p_memsz};
    }
    return found->size != 0;
}

/* 3.6: all variables of CPython's; it sleeps by futex in none but the GIL's, as its locks are on
 * the heap. */
static bool find_gil_36(const PyThreadState *state)
{
    PyThreadState **current = cpython_symbol("_PyThreadState_Current");
    struct part variables = {NULL, 0};
    dl_iterate_phdr(on_file, &variables);
    if (!current || *current != state || !variables.size || variables.size > UINT32_MAX ||
        !is_beside_dict_type(current))
        return false;
    page->gil_from_dict_type = variables.start - dict_type();
    page->gil_size = (uint32_t)variables.size;
    page->gil_last_holder = (int32_t)((char *)current - variables.start);
    return true;
}

enum { LONGEST = 1000 * 1000 * 1000 }; /* an interval */

/* Whether it can be the GIL, which this thread has taken. */
static bool is_taken_gil(const struct gil_runtime_state_37 *gil, const PyThreadState *state)
{
    return LOAD_RELAXED(gil->last_holder) == state && LOAD_RELAXED(gil->locked) == 1 &&
           gil->switch_number > 0 && gil->interval > 0 &&
           (py._PyEval_GetSwitchInterval ? gil->interval == py._PyEval_GetSwitchInterval()
                                         : gil->interval <= LONGEST);
}

/* How far behind the start of the GIL is what struct gil_runtime_state_37 has. */
static size_t gil_start(void)
{
    return py.free_threaded ? offsetof(struct gil_runtime_state_313t, gil) : 0;
}

/* Where an interpreter points to it; 0: nowhere, or in several places. */
static uint16_t find_pointer(const PyInterpreterState *interpreter,
                             const struct gil_runtime_state_37 *gil)
{
    return (uint16_t)find_word(interpreter, INTERPRETER_WORDS, (const char *)gil - gil_start());
}

static bool is_off(const struct gil_runtime_state_37 *gil)
{
    return py.free_threaded && LOAD_RELAXED(*(const int *)((const char *)gil - gil_start())) == 0;
}

/* The same, or one that is off, which says less of itself: the interpreter points to it. */
static bool is_gil(const struct gil_runtime_state_37 *gil, const PyThreadState *state,
                   const PyInterpreterState *interpreter)
{
    if (!is_off(gil))
        return is_taken_gil(gil, state);
    unsigned long interval = LOAD_RELAXED(gil->interval);
    return LOAD_RELAXED(gil->locked) == 0 && interval > 0 && interval <= LONGEST &&
           find_pointer(interpreter, gil);
}

/* Where the GIL is a part of: the main interpreter's state, or _PyRuntime, whose size the dynamic
 * linker knows. */
static struct part around_gil(const PyInterpreterState *interpreter)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (py.minor >= 12)
        return (struct part){(const char *)interpreter, INTERPRETER_WORDS * sizeof(void *)};
    if (!py.runtime || !dladdr1(py.runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
        info.dli_saddr != py.runtime)
        return (struct part){NULL, 0};
    return (struct part){py.runtime, symbol->st_size};
}

/* The one place there that can be the GIL; NULL: none or several. */
static const struct gil_runtime_state_37 *find_gil_37(const PyThreadState *state,
                                                      const PyInterpreterState *interpreter)
{
    struct part part = around_gil(interpreter);
    const struct gil_runtime_state_37 *found = NULL;
    for (size_t at = gil_start(); at + sizeof *found <= part.size; at += sizeof(void *)) {
        const struct gil_runtime_state_37 *gil = (const void *)(part.start + at);
        if (!is_gil(gil, state, interpreter))
            continue;
        if (found)
            return NULL;
        found = gil;
    }
    return found;
}

static bool find_gil(const PyThreadState *state, const PyInterpreterState *interpreter)
{
    if (py.minor == 6)
        return find_gil_36(state);
    const struct gil_runtime_state_37 *gil = find_gil_37(state, interpreter);
    if (!gil)
        return false;
    if (py.minor >= 12) {
        page->interp_gil = find_pointer(interpreter, gil);
        if (!page->interp_gil)
            return false;
    } else if (is_beside_dict_type(gil))
        page->gil_from_dict_type = (const char *)gil - dict_type();
    else
        return false;
    page->gil_enabled = py.free_threaded;
    page->gil_size = (uint32_t)(gil_start() + sizeof *gil);
    page->gil_last_holder =
        (int32_t)(gil_start() + offsetof(struct gil_runtime_state_37, last_holder));
    page->gil_locked = (int32_t)(gil_start() + offsetof(struct gil_runtime_state_37, locked));
    page->gil_switch_number =
        (int32_t)(gil_start() + offsetof(struct gil_runtime_state_37, switch_number));
    if (is_off(gil))
        debug_log("nothing of the GIL: it's off, until a module is imported that needs it");
    return true;
}

bool offsets_fill_interpreter(struct offsets_page *in, PyThreadState *state)
{
    const PyInterpreterState *interpreter = cpython_interpreter();
    page = in;
    page->tstate_interp = 0;
    page->interp_gil = 0;
    page->gil_size = 0;
    if (!cpython_is_main() || cpython_is_finalizing()) /* without modules CPython would abort */
        return false;
    if (!find_modules(interpreter) || cpython_interpreter_of(state) != interpreter) {
        debug_log("no tasks, and nothing of the GIL: the interpreter's modules are not found");
        return true;
    }
    page->tstate_interp = offsetof(struct PyThreadState_head, interp);
    if (!find_gil(state, interpreter))
        debug_log("nothing of the GIL: it is not found");
    return true;
}
