/*
 * Publishes the version at once, and the offsets when a frame has shown that they are right.  The
 * offsets are those of shared/cpython_structs.h.  From 3.13 on CPython's debug offsets must be the
 * same, and have the rest; up to 3.12 a search of CPython's memory finds the rest.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/offsets.h"

#include "cpython/frame.h"
#include "cpython/threads.h"
#include "os/process.h"
#include "shared/cpython_structs.h"
#include "shared/versions.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- the page */

enum { PAGE = 4096 };
_Static_assert(sizeof(struct offsets_page) <= OFFSETS_LACKS, "the text is behind the offsets");

atomic_bool offsets_decided = true; /* until there is a page */

static struct offsets_page page = {.magic = OFFSETS_MAGIC};
static void *mapped_page; /* the page's address, one of two; NULL: there is no page */
static bool is_known;     /* there is a page, and this CPython is not newer than supported */
static char lacks[OFFSETS_LACKS_SIZE]; /* the text on the page */

/* For the debug log, and the first one for the page. */
__attribute__((format(printf, 1, 2))) static void lack(const char *format, ...)
{
    char text[sizeof lacks] = ""; /* no garbage for the page */
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    debug_log("%s", text);
    if (!*lacks)
        memcpy(lacks, text, sizeof text);
}

/* The tapset may read the page at any time, so a complete new page replaces it: at worst there is
 * no page for a moment. */
static bool replace_page(void)
{
    void *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return false;
    memcpy(fresh, &page, sizeof page);
    memcpy((char *)fresh + OFFSETS_LACKS, lacks, sizeof lacks);
    if (mprotect(fresh, PAGE, PROT_READ) == 0 &&
        mremap(fresh, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, mapped_page) != MAP_FAILED)
        return true;
    munmap(fresh, PAGE);
    return false;
}

void offsets_publish(void)
{
    static const uint64_t addresses[] = {OFFSETS_ADDRESS, OFFSETS_LOW_ADDRESS};
    if (sizeof(void *) != 8) {
        debug_log("no stack traces: this is a program of %zu bits", 8 * sizeof(void *));
        return;
    }
    mapped_page = map_fixed_page(addresses, 2, PAGE, PROT_READ);
    if (!mapped_page) {
        debug_log("no stack traces: the program uses the addresses %#llx and %#llx, where the "
                  "shim's page belongs",
                  OFFSETS_ADDRESS, OFFSETS_LOW_ADDRESS);
        return;
    }
    tls_slot_init();
    const char *version = py.Py_GetVersion(); /* "3.11.2 (main, ..." */
    size_t length = strcspn(version, " ");
    if (length < sizeof page.version)
        memcpy(page.version, version, length);
    page.ob_base_offset = (uint16_t)py.ob_base_offset;
    if (py.minor > CPYTHON_NEWEST_MINOR)
        lack("no stack traces: the frames of CPython 3.%d are not known", py.minor);
    if (!replace_page())
        debug_log("no stack traces: their page could not be mapped");
    else if (py.minor <= CPYTHON_NEWEST_MINOR) {
        is_known = true;
        offsets_decided = false;
    }
}

static void fill_in_frame(void)
{
    page.frame_previous = py.frame->previous;
    page.frame_executable = py.frame->executable;
    page.frame_instr_ptr = py.frame->instr_ptr;
    page.frame_owner = py.frame->owner;
    if (py.free_threaded)
        page.frame_tlbc_index = py.frame->tlbc_index;
}

static void fill_in_code(PyObject *code)
{
    page.co_filename = object_offset(py.code->co_filename);
    page.co_name = object_offset(py.code->co_name);
    page.co_linetable = object_offset(py.code->co_linetable);
    page.co_firstlineno = object_offset(py.code->co_firstlineno);
    if (py.code->co_qualname)
        page.co_qualname = object_offset(py.code->co_qualname);
    page.code_basicsize = (uint16_t)cpython_int_attr(cpython_type(code), "__basicsize__");
    if (py.minor >= 11)
        page.co_code_adaptive = page.code_basicsize;
    if (py.free_threaded)
        page.co_tlbc = page.co_code_adaptive - (uint16_t)sizeof(struct PyCodeArray *);
}

/* ---------------------------------------------------------------- check of a frame */

static void *frame_of(PyFrameObject *object)
{
    return py.minor >= 11 ? frame_interpreter_frame(object) : object;
}

static bool code_is_right(PyObject *code)
{
    return page.code_basicsize && /* 0: it could not be read */
           has_attribute_at(code, page.co_filename, "co_filename") &&
           has_attribute_at(code, page.co_name, "co_name") &&
           (!page.co_qualname || has_attribute_at(code, page.co_qualname, "co_qualname")) &&
           has_attribute_at(code, page.co_linetable,
                            py.code->lines == LINES_LNOTAB ? "co_lnotab" : "co_linetable") &&
           *(int *)((char *)code + page.co_firstlineno) == cpython_int_attr(code, "co_firstlineno");
}

/* The first instruction of the code that the frame runs; NULL: not found.  In a free-threaded build
 * the frame may run this thread's own copy of the instructions.  Another thread may replace the
 * table by a larger one.  CPython frees the old table only when no thread that was attached then
 * can still read it. */
static const char *instructions_of(const void *frame, const char *code)
{
    if (!page.co_tlbc)
        return code + page.co_code_adaptive;
    const struct PyCodeArray *table = (const void *)read_word(code, page.co_tlbc);
    int32_t copy = *(const int32_t *)((const char *)frame + page.frame_tlbc_index);
    if (!table || table->size < 1 || table->entries[0] != code + page.co_code_adaptive ||
        copy < 0 || copy >= table->size)
        return NULL;
    return table->entries[copy];
}

static bool instr_ptr_is_right(PyFrameObject *object, const void *frame, const char *code)
{
    if (py.minor >= 11) { /* instr_ptr of a frame that has not begun is before the first one */
        const char *first = instructions_of(frame, code);
        if (!first)
            return false;
        ptrdiff_t offset = read_word(frame, page.frame_instr_ptr) - first;
        int instruction = py.PyFrame_GetLasti(object);
        return offset < 0 ? instruction < 0 : instruction == offset;
    }
    int instruction = *(int *)((char *)frame + page.frame_instr_ptr);
    if (py.code->lines == LINES_LINETABLE && instruction > 0)
        instruction *= 2;
    return instruction == cpython_int_attr((PyObject *)object, "f_lasti");
}

/* False: the frame is marked as one between C and Python. */
static bool owner_is_right(const char *frame)
{
    return !page.frame_owner ||
           (unsigned char)frame[page.frame_owner] < (unsigned char)FRAME_OWNED_BY_CSTACK;
}

enum check_result { RIGHT, WRONG, INCONCLUSIVE };

/* Whether the frame's caller is found.  Frames between C and Python may come before it: one for
 * each call from C, and from 3.15 on one below all others of a thread.  A frame without a caller
 * can't show that the offset is right. */
static enum check_result previous_is_right(PyFrameObject *object, const void *frame)
{
    PyFrameObject *back = frame_back(object);
    char *caller = read_word(frame, page.frame_previous), *expected = back ? frame_of(back) : NULL;
    for (int passed = 0; py.minor >= 12 && passed < 2 && caller && caller != expected; passed++)
        caller = read_word(caller, page.frame_previous);
    enum check_result check_result = caller != expected ? WRONG : back ? RIGHT : INCONCLUSIVE;
    if (back)
        py.Py_DecRef((PyObject *)back);
    return check_result;
}

static bool agrees(const char *member, uint64_t debug_offset, size_t offset)
{
    if (debug_offset == offset)
        return true;
    lack("no stack traces: CPython's debug offsets have another %s", member);
    return false;
}
#define AGREES(member, offset) agrees(#member, DEBUG_OFFSET(member), offset)
#define AGREES_314(member, offset) agrees(#member, DEBUG_OFFSET_314(member), offset)

/* Whether CPython's debug offsets, from 3.13 on, are those with which the page has been filled in.
 * Some of these can't be compared with the frame: names may be the same str, and numbers 0. */
static bool debug_offsets_agree(void)
{
    if (py.minor < 13)
        return true;
    if (!py.has_debug_offsets) {
        lack("no stack traces: CPython's debug offsets are not those of its version");
        return false;
    }
    return AGREES(pyobject.ob_type, object_offset(offsetof(struct PyObject_head, ob_type))) &&
           AGREES(tuple_object.ob_item, page.tuple_ob_item) &&
           AGREES(dict_object.ma_keys, page.ma_keys) &&
           AGREES(dict_object.ma_values, page.ma_values) &&
           AGREES(code_object.filename, page.co_filename) &&
           AGREES(code_object.name, page.co_name) &&
           AGREES(code_object.qualname, page.co_qualname) &&
           AGREES(code_object.linetable, page.co_linetable) &&
           AGREES(code_object.firstlineno, page.co_firstlineno) &&
           AGREES(code_object.argcount, page.co_argcount) &&
           AGREES(code_object.localsplusnames, page.co_varnames) &&
           AGREES(code_object.localspluskinds, page.co_localspluskinds) &&
           AGREES(code_object.co_code_adaptive, page.co_code_adaptive) &&
           AGREES(interpreter_frame.previous, page.frame_previous) &&
           AGREES(interpreter_frame.executable, page.frame_executable) &&
           AGREES(interpreter_frame.instr_ptr, page.frame_instr_ptr) &&
           AGREES(interpreter_frame.localsplus, frame_variables_offset(py.minor, 0)) &&
           (!page.frame_owner || AGREES(interpreter_frame.owner, page.frame_owner)) &&
           (!py.free_threaded || (AGREES_314(interpreter_frame.tlbc_index, page.frame_tlbc_index) &&
                                  AGREES_314(code_object.co_tlbc, page.co_tlbc))) &&
           AGREES(thread_state.interp, offsetof(struct PyThreadState_head, interp));
}

static enum check_result check_frame(PyFrameObject *object, PyObject *code)
{
    fill_in_frame();
    fill_in_code(code);
    void *frame = frame_of(object);
    if (!code_is_right(code) || !frame ||
        ((uintptr_t)read_word(frame, page.frame_executable) & ~CODE_TAG) != (uintptr_t)code ||
        !instr_ptr_is_right(object, frame, (char *)code) || !owner_is_right(frame)) {
        lack("no stack traces: frames in this CPython are not as in the release");
        return WRONG;
    }
    enum check_result back = previous_is_right(object, frame);
    if (back == WRONG) {
        lack("no stack traces: the callers of frames are not found");
        return WRONG;
    }
    offsets_fill_values(object, frame, code);
    return debug_offsets_agree() ? back : WRONG;
}

/* ---------------------------------------------------------------- check of a thread */

/* Whether the offsets lead from the thread state to the frame, its innermost one. */
static bool fill_in_thread_frame(PyThreadState *state, const void *frame)
{
    if (py.minor >= 13) {
        page.tstate_frame =
            (uint16_t)word_offset(DEBUG_OFFSET(thread_state.current_frame), THREAD_WORDS);
        if (!page.tstate_frame)
            return false;
    } else if (py.minor == 12) {
        page.tstate_cframe = offsetof(struct PyThreadState_312, cframe);
        page.tstate_frame = offsetof(struct PyCFrame_312, current_frame);
    } else if (py.minor == 11) {
        page.tstate_cframe = offsetof(struct PyThreadState_311, cframe);
        page.tstate_frame = offsetof(struct PyCFrame_311, current_frame);
    } else
        page.tstate_frame = offsetof(struct PyThreadState_36, frame);
    page.tstate_current_executor = (uint16_t)frame_executor_offset();
    const char *from = page.tstate_cframe ? read_word(state, page.tstate_cframe) : (char *)state;
    return from && read_word(from, page.tstate_frame) == frame;
}

/* Uses the thread's innermost frame: a marker may report a frame that is only about to start. */
static enum check_result check_thread(void)
{
    const char *why;
    PyThreadState *state = py.PyThreadState_Get();
    PyFrameObject *innermost = py.PyEval_GetFrame();
    /* Not in a thread that has changed to another interpreter. */
    if (!innermost || py.PyGILState_GetThisThreadState() != state)
        return INCONCLUSIVE;
    if (!fill_in_thread_frame(state, frame_of(innermost))) {
        if (py.minor >= 13)
            lack("no stack traces without a marker: the frame of a thread is not where CPython's "
                 "debug offsets have it");
        return INCONCLUSIVE;
    }
    if (!page.tstate_tls)
        page.tstate_tls = tls_slot_find(&why);
    if (page.tstate_tls)
        return offsets_fill_interpreter(state) ? RIGHT : INCONCLUSIVE;
    lack("no stack traces without a marker: %s", why);
    return WRONG;
}

/* ---------------------------------------------------------------- decision */

/* After so many inconclusive checks no further frame is checked. */
enum { MOST_FRAMES = 100 };
static unsigned frames_checked;

/* After an inconclusive check, the offsets that were found are published, and the next frame is
 * checked. */
static void check(PyFrameObject *object, PyObject *code)
{
    struct offsets_page before = page;
    bool is_thread_known = before.tstate_tls && before.tstate_interp, lacked = *lacks;
    if (!is_thread_known)
        memset(lacks, 0, sizeof lacks);
    enum check_result frame = check_frame(object, code), thread = INCONCLUSIVE;
    page.lines = LINES_UNKNOWN;
    if (frame != WRONG) {
        page.lines = py.code->lines;
        thread = is_thread_known ? RIGHT : check_thread();
    } else
        page.tstate_tls = 0;
    bool decided = frame == WRONG || (frame == RIGHT && thread != INCONCLUSIVE);
    offsets_decided = decided || ++frames_checked >= MOST_FRAMES;
    if (!decided && offsets_decided && thread == INCONCLUSIVE)
        lack("no stack traces without a marker: the frame of a thread was not found in its state");
    if ((lacked || *lacks || memcmp(&page, &before, sizeof page) != 0) && !replace_page())
        debug_log("no stack traces: their page could not be mapped");
}

void offsets_forget_tls(void)
{
    if (!is_known)
        return;
    page.tstate_tls = 0;
    page.tstate_interp = 0;
    memset(lacks, 0, sizeof lacks);
    frames_checked = 0;
    offsets_decided = false;
}

void offsets_check(PyFrameObject *object)
{
    /* Threads without a common GIL may call this at once: one of them checks. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    PyObject *code = frame_code(object);
    if (!code || pthread_mutex_trylock(&lock) != 0)
        return;
    if (!offsets_decided)
        check(object, code);
    pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- dicts */

bool has_attribute_at(PyObject *object, unsigned offset, const char *attribute)
{
    PyObject *value = py.PyObject_GetAttrString(object, attribute);
    bool same = value && read_word(object, offset) == (char *)value;
    if (value)
        py.Py_DecRef(value);
    else
        py.PyErr_Clear();
    return same;
}

static void fill_in_dict(void)
{
    page.ma_keys = object_offset(offsetof(struct PyDictObject, ma_keys));
    page.ma_values = object_offset(offsetof(struct PyDictObject, ma_values));
    page.dk_format = py.dict->dk_format;
    page.dk_indices_size = py.dict->dk_indices_size;
    page.dk_nentries = py.dict->dk_nentries;
    page.dk_indices = py.dict->dk_indices;
    page.dv_format = py.dict->dv_format;
    page.dv_values = py.dict->dv_values;
    page.dv_preheader = py.dict->dv_preheader;
}

/* The address of an entry, in a dict whose values are in the entries. */
static char *entry_at(const char *keys, Py_ssize_t index, bool *of_str)
{
    const unsigned char *size = (const unsigned char *)keys + page.dk_indices_size;
    size_t indices;
    if (page.dk_format == KEYS_LOG2)
        indices = (size_t)1 << (size[1] & 31);
    else {
        size_t count = *(const size_t *)size;
        indices = count * (count <= UINT8_MAX    ? 1
                           : count <= UINT16_MAX ? 2
                           : count <= UINT32_MAX ? 4
                                                 : 8);
    }
    *of_str = page.dk_format == KEYS_LOG2 && size[2] != 0;
    size_t bytes = *of_str ? sizeof(struct PyDictUnicodeEntry) : sizeof(struct PyDictKeyEntry);
    return (char *)keys + page.dk_indices + indices + (size_t)index * bytes;
}

/* Compares the first entry of an iteration, and its index.  Called with the dict's lock. */
static bool is_right_for_dict(PyObject *dict)
{
    Py_ssize_t next = 0;
    PyObject *key, *value;
    const char *keys = read_word(dict, page.ma_keys);
    if (!keys || read_word(dict, page.ma_values) || !py.PyDict_Next(dict, &next, &key, &value) ||
        *(const Py_ssize_t *)(keys + page.dk_nentries) < next)
        return false;
    bool of_str;
    const char *entry = entry_at(keys, next - 1, &of_str);
    const struct PyDictUnicodeEntry *both =
        (const void *)(of_str ? entry : entry + offsetof(struct PyDictKeyEntry, me_key));
    return both->me_key == key && both->me_value == value;
}

/* Whether the offsets lead to the frame's globals and an entry there. */
static bool is_right_for_globals(PyFrameObject *object, const void *frame)
{
    PyObject *globals = py.PyObject_GetAttrString((PyObject *)object, "f_globals");
    bool right = globals && read_word(frame, page.frame_f_globals) == (char *)globals;
    struct PyCriticalSection section;
    if (right) {
        nogil_lock_object(&section, globals);
        right = is_right_for_dict(globals);
        nogil_unlock_object(&section);
    }
    if (globals)
        py.Py_DecRef(globals);
    else
        py.PyErr_Clear();
    return right;
}

/* ---------------------------------------------------------------- qualified names */

/* The offset of an object's __qualname__, among the words that its type's __basicsize__ counts; 0:
 * not found.  The last match counts: __name__, which is before it, may be the same str. */
static uint16_t find_qualified_name(PyObject *object)
{
    PyObject *name = object ? py.PyObject_GetAttrString(object, "__qualname__") : NULL;
    long size = name ? cpython_int_attr(cpython_type(object), "__basicsize__") : 0;
    uint16_t found = 0;
    for (unsigned at = py.ob_base_offset + sizeof(struct PyObject_head);
         at + sizeof name <= (size_t)size; at += sizeof name)
        if (read_word(object, at) == (char *)name)
            found = (uint16_t)at;
    if (name)
        py.Py_DecRef(name);
    else
        py.PyErr_Clear();
    return found;
}

/* By a class and a function that exist in each process: the class of sys.__spec__, which importlib
 * defines in Python, and its __init__(). */
static void find_qualified_names(void)
{
    PyObject *spec = cpython_sys_attr("__spec__");
    PyObject *class = spec ? cpython_type(spec) : NULL;
    if (class && cpython_type(class) != cpython_type(py.code_type)) /* not importlib's */
        class = NULL;
    PyObject *init = class ? py.PyObject_GetAttrString(class, "__init__") : NULL;
    page.ht_qualname = find_qualified_name(class);
    page.func_qualname =
        init && cpython_type(init) == py.function_type ? find_qualified_name(init) : 0;
    py.PyErr_Clear();
    if (init)
        py.Py_DecRef(init);
    if (spec)
        py.Py_DecRef(spec);
}

/* ---------------------------------------------------------------- variables */

static void fill_in_code_variables(void)
{
    page.co_flags = object_offset(py.code->co_flags);
    page.co_argcount = object_offset(py.code->co_argcount);
    page.co_kwonlyargcount = object_offset(py.code->co_kwonlyargcount);
    page.co_varnames = object_offset(py.code->co_varnames);
    if (py.code->co_localspluskinds)
        page.co_localspluskinds = object_offset(py.code->co_localspluskinds);
    page.co_cellvars = py.code->co_cellvars;
    page.co_freevars = py.code->co_freevars;
}

static bool has_int(PyObject *code, unsigned offset, const char *attribute)
{
    return *(int *)((char *)code + offset) == cpython_int_attr(code, attribute);
}

/* From 3.11 on co_localspluskinds has no attribute.  It is just before co_filename, which
 * code_is_right() has compared. */
static bool is_right_for_variables(PyFrameObject *object, PyObject *code)
{
    size_t basicsize = (size_t)cpython_int_attr(cpython_type((PyObject *)object), "__basicsize__");
    page.frame_localsplus = (uint16_t)frame_variables_offset(py.minor, basicsize);
    return frame_basicsize(py.minor, page.frame_localsplus) + py.ob_base_offset == basicsize &&
           has_int(code, page.co_flags, "co_flags") &&
           has_int(code, page.co_argcount, "co_argcount") &&
           has_int(code, page.co_kwonlyargcount, "co_kwonlyargcount") &&
           (page.co_localspluskinds ? page.co_localspluskinds + sizeof(void *) == page.co_filename
                                    : has_attribute_at(code, page.co_varnames, "co_varnames") &&
                                          has_attribute_at(code, page.co_cellvars, "co_cellvars") &&
                                          has_attribute_at(code, page.co_freevars, "co_freevars"));
}

void offsets_fill_values(PyFrameObject *object, const void *frame, PyObject *code)
{
    fill_in_dict();
    page.frame_f_globals = py.frame->f_globals;
    page.frame_f_locals = py.frame->f_locals;
    if (!is_right_for_globals(object, frame)) {
        lack("no values, and no names of modules: dicts in this CPython are not as in the release");
        page.frame_f_globals = 0;
        page.dk_format = KEYS_UNKNOWN;
    }
    find_qualified_names();
    page.tuple_ob_item = (uint16_t)cpython_int_attr(py.tuple_type, "__basicsize__");
    fill_in_code_variables();
    if (!is_right_for_variables(object, code)) {
        lack("no values: the variables of frames in this CPython are not as in the release");
        page.frame_localsplus = 0;
    }
}

/* ---------------------------------------------------------------- modules */

/* The offset of the only word among the first `words` of an object that equals expected; 0: none or
 * several.  The first word is not compared. */
static size_t find_word(const void *object, size_t words, const void *expected)
{
    size_t found = 0;
    for (size_t at = 1; at < words; at++) {
        if (read_word(object, (unsigned)(at * sizeof(void *))) != expected)
            continue;
        if (found)
            return 0;
        found = at;
    }
    return found * sizeof(void *);
}

/* From 3.12 on the main interpreter's state is in _PyRuntime, and has more words than
 * INTERPRETER_WORDS. */
static bool find_modules(const PyInterpreterState *interpreter)
{
    const void *modules = py.PyImport_GetModuleDict();
    size_t offset = py.minor <= 11   ? interpreter_modules_offset(py.minor)
                    : py.minor == 12 ? find_word(interpreter, INTERPRETER_WORDS, modules)
                                     : word_offset(DEBUG_OFFSET(interpreter_state.imports_modules),
                                                   INTERPRETER_WORDS);
    if (!offset || read_word(interpreter, (unsigned)offset) != (const char *)modules)
        return false;
    page.interp_modules = (uint32_t)offset;
    return true;
}

/* ---------------------------------------------------------------- the GIL */

/* The GIL is known by the values that its members have while this thread holds it.  A free-threaded
 * build has a GIL, too, which may be off until a module is imported that needs it: then it has the
 * values of a GIL that is off.  Up to 3.12 CPython's memory is searched for the GIL. */

/* The type of a dict, from which the page has the distance of the GIL.  Both must be in one file:
 * the type is then CPython's own, and not at an address of the program. */
static const char *dict_type(void)
{
    return (const char *)cpython_type(py.PyImport_GetModuleDict());
}

/* A range of CPython's memory. */
struct part {
    const char *start;
    size_t size;
};

/* Finds the writable segment of a file that has the type of a dict. */
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

/* By dl_iterate_phdr(): dladdr() and dlsym() take ld.so's main lock, for whose holder, a thread in
 * dlopen(), may wait for the GIL. */
static struct part variables(void)
{
    struct part found = {NULL, 0};
    dl_iterate_phdr(on_file, &found);
    return found;
}

static bool is_beside_dict_type(const void *other)
{
    struct part all = variables();
    return (const char *)other >= all.start && (const char *)other < all.start + all.size;
}

/* In 3.6 the GIL is several variables, so the page has the range of all variables of CPython as the
 * GIL.  Threads sleep by futex only on those of the GIL: CPython's locks are on the heap. */
static bool find_gil_36(const PyThreadState *state)
{
    struct part all = variables();
    if (!py.current || *py.current != state || all.size > UINT32_MAX ||
        !is_beside_dict_type(py.current))
        return false;
    page.gil_from_dict_type = all.start - dict_type();
    page.gil_size = (uint32_t)all.size;
    page.gil_last_holder = (int32_t)((char *)py.current - all.start);
    return true;
}

enum { LONGEST = 1000 * 1000 * 1000 }; /* the longest interval, in microseconds */

/* Whether this can be the GIL, held by the calling thread. */
static bool is_taken_gil(const struct gil_runtime_state_37 *gil, const PyThreadState *state)
{
    return LOAD_RELAXED(gil->last_holder) == state && LOAD_RELAXED(gil->locked) == 1 &&
           gil->switch_number > 0 && gil->interval > 0 &&
           (py._PyEval_GetSwitchInterval ? gil->interval == py._PyEval_GetSwitchInterval()
                                         : gil->interval <= LONGEST);
}

/* The offset of struct gil_runtime_state_37 in the GIL. */
static size_t gil_start(void)
{
    return py.free_threaded ? offsetof(struct gil_runtime_state_313t, gil) : 0;
}

static bool is_off(const struct gil_runtime_state_37 *gil)
{
    return py.free_threaded && LOAD_RELAXED(*(const int *)((const char *)gil - gil_start())) == 0;
}

/* The GIL where the debug offsets have it; NULL: it is not there. */
static const struct gil_runtime_state_37 *find_gil_313(const PyThreadState *state,
                                                       const PyInterpreterState *interpreter)
{
    size_t at = word_offset(DEBUG_OFFSET(interpreter_state.gil_runtime_state), INTERPRETER_WORDS);
    const struct gil_runtime_state_37 *gil =
        (const void *)((const char *)interpreter + at + gil_start());
    if (!at ||
        DEBUG_OFFSET(interpreter_state.gil_runtime_state_holder) !=
            at + gil_start() + offsetof(struct gil_runtime_state_37, last_holder) ||
        DEBUG_OFFSET(interpreter_state.gil_runtime_state_locked) !=
            at + gil_start() + offsetof(struct gil_runtime_state_37, locked))
        return NULL;
    if (!is_off(gil))
        return is_taken_gil(gil, state) ? gil : NULL;
    unsigned long interval = LOAD_RELAXED(gil->interval);
    return LOAD_RELAXED(gil->locked) == 0 && interval > 0 && interval <= LONGEST ? gil : NULL;
}

/* The memory to search for the GIL: in 3.12 the main interpreter's state, up to 3.11 _PyRuntime,
 * whose size the dynamic linker knows. */
static struct part around_gil(const PyInterpreterState *interpreter)
{
    if (py.minor == 12)
        return (struct part){(const char *)interpreter, INTERPRETER_WORDS * sizeof(void *)};
    return (struct part){py.runtime, py.runtime_size};
}

/* The only address there that can be the GIL; NULL: none or several. */
static const struct gil_runtime_state_37 *find_gil_37(const PyThreadState *state,
                                                      const PyInterpreterState *interpreter)
{
    struct part part = around_gil(interpreter);
    const struct gil_runtime_state_37 *found = NULL;
    for (size_t at = 0; at + sizeof *found <= part.size; at += sizeof(void *)) {
        const struct gil_runtime_state_37 *gil = (const void *)(part.start + at);
        if (!is_taken_gil(gil, state))
            continue;
        if (found)
            return NULL;
        found = gil;
    }
    return found;
}

/* The offset of the interpreter's pointer to the GIL; 0: not found. */
static uint16_t find_pointer(const PyInterpreterState *interpreter, const void *gil)
{
    size_t offset = py.minor == 12
                        ? find_word(interpreter, INTERPRETER_WORDS, gil)
                        : word_offset(DEBUG_OFFSET(interpreter_state.ceval_gil), INTERPRETER_WORDS);
    return read_word(interpreter, (unsigned)offset) == gil ? (uint16_t)offset : 0;
}

static bool find_gil(const PyThreadState *state, const PyInterpreterState *interpreter)
{
    if (py.minor == 6)
        return find_gil_36(state);
    const struct gil_runtime_state_37 *gil =
        py.minor <= 12 ? find_gil_37(state, interpreter) : find_gil_313(state, interpreter);
    if (!gil)
        return false;
    if (py.minor >= 12) {
        page.interp_gil = find_pointer(interpreter, (const char *)gil - gil_start());
        if (!page.interp_gil)
            return false;
    } else if (is_beside_dict_type(gil))
        page.gil_from_dict_type = (const char *)gil - dict_type();
    else
        return false;
    page.gil_enabled = py.free_threaded;
    page.gil_size = (uint32_t)(gil_start() + sizeof *gil);
    page.gil_last_holder =
        (int32_t)(gil_start() + offsetof(struct gil_runtime_state_37, last_holder));
    page.gil_locked = (int32_t)(gil_start() + offsetof(struct gil_runtime_state_37, locked));
    page.gil_switch_number =
        (int32_t)(gil_start() + offsetof(struct gil_runtime_state_37, switch_number));
    if (is_off(gil))
        debug_log("nothing of the GIL: it's off, until a module is imported that needs it");
    return true;
}

/* ---------------------------------------------------------------- the collector */

/* Whether the int can be what it is thought to be: gc.callbacks may run now. */
static bool is_flag(const char *at)
{
    int value = *(const int *)at;
    return value == 0 || value == 1;
}

/* Finds the collector's state by its lists, which the module gc has. */
static bool find_collector(const PyInterpreterState *interpreter)
{
    struct part part = {(const char *)interpreter,
                        py.minor <= 11 ? page.interp_modules : INTERPRETER_WORDS * sizeof(void *)};
    if (py.minor <= 8)
        part = around_gil(interpreter);
    PyObject *gc = py.PyDict_GetItemString(py.PyImport_GetModuleDict(), "gc"); /* by hooks/gc.c */
    PyObject *garbage = gc ? py.PyObject_GetAttrString(gc, "garbage") : NULL;
    PyObject *callbacks = garbage ? py.PyObject_GetAttrString(gc, "callbacks") : NULL;
    py.PyErr_Clear();
    size_t before = py.minor >= 15 ? offsetof(struct gc_runtime_state_315, garbage)
                                   : offsetof(struct gc_runtime_state_37, garbage);
    size_t at = callbacks ? find_word(part.start, part.size / sizeof(void *), garbage) : 0;
    bool found = at > before && at + 2 * sizeof(void *) <= part.size &&
                 read_word(part.start, (unsigned)(at + sizeof(void *))) == (char *)callbacks &&
                 is_flag(part.start + at - before);
    if (callbacks)
        py.Py_DecRef(callbacks);
    if (garbage)
        py.Py_DecRef(garbage);
    if (!found)
        return false;
    if (py.minor <= 8)
        page.gil_to_collecting =
            (int32_t)(part.start + at - before - (dict_type() + page.gil_from_dict_type));
    else
        page.interp_collecting = (uint32_t)(at - before);
    if (py.minor >= 15)
        page.interp_collecting_frame =
            page.interp_collecting + offsetof(struct gc_runtime_state_315, frame);
    return true;
}

bool offsets_fill_interpreter(PyThreadState *state)
{
    const PyInterpreterState *interpreter = cpython_interpreter();
    page.tstate_interp = 0;
    page.interp_gil = 0;
    page.gil_size = 0;
    page.interp_collecting = page.interp_collecting_frame = 0;
    page.gil_to_collecting = 0;
    /* PyImport_GetModuleDict() aborts in an interpreter without modules. */
    if (!cpython_is_main() || cpython_is_finalizing())
        return false;
    if (!find_modules(interpreter) || cpython_interpreter_of(state) != interpreter) {
        lack("no tasks, and nothing of the GIL: the interpreter's modules are not found");
        return true;
    }
    page.tstate_interp = offsetof(struct PyThreadState_head, interp);
    if (py.minor >= 14 && !offsets_fill_tasks(&page, state, interpreter))
        lack("no tasks: the lists of asyncio's tasks are not where CPython's release has them");
    if (!find_gil(state, interpreter))
        lack("nothing of the GIL: it is not found");
    else if (py.minor >= 7 && !py.free_threaded && !find_collector(interpreter))
        lack("no <GC> in stacks: the collector's state is not found");
    return true;
}
