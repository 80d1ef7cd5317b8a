/*
 * Publishes which CPython this is, and where its threads and frames have what (layout_page.h): at
 * once the version, and the rest when a first frame has shown that it's right.  The offsets are
 * those of cpython_layout.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "layout.h"

#include "cpython_layout.h"
#include "debug.h"
#include "fixed_page.h"
#include "frame.h"
#include "layout_interpreter.h"
#include "layout_values.h"
#include "thread_slot.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };
_Static_assert(sizeof(struct offsets_page) <= PAGE, "it is one page");

atomic_bool offsets_decided = true; /* until there is a page */

static struct offsets_page page = {.magic = OFFSETS_MAGIC};
static void *mapped_page; /* one of the two addresses, where the page is; NULL: there is none */
static bool is_known;     /* there is a page, and this CPython's layouts are in cpython_layout.h */

/* The tapset may read at any time, so a whole new page takes the old one's place: at worst there is
 * none for a moment. */
static bool replace_page(void)
{
    void *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return false;
    memcpy(fresh, &page, sizeof page);
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
    if (!replace_page())
        debug_log("no stack traces: their page could not be mapped");
    else if (py.minor <= CPYTHON_NEWEST_MINOR) {
        is_known = true;
        offsets_decided = false;
    } else
        debug_log("no stack traces: the frames of CPython 3.%d are not known", py.minor);
}

static void fill_in_frame(void)
{
    if (py.minor >= 12) {
        page.frame_previous = offsetof(struct PyInterpreterFrame_312, previous);
        page.frame_executable = offsetof(struct PyInterpreterFrame_312, f_executable);
        page.frame_instr_ptr = offsetof(struct PyInterpreterFrame_312, instr_ptr);
        if (py.minor <= OWNER_LAST_MINOR)
            page.frame_owner = offsetof(struct PyInterpreterFrame_312, owner);
        if (py.free_threaded)
            page.frame_tlbc_index = offsetof(struct PyInterpreterFrame_314t, tlbc_index);
    } else if (py.minor == 11) {
        page.frame_previous = offsetof(struct PyInterpreterFrame_311, previous);
        page.frame_executable = offsetof(struct PyInterpreterFrame_311, f_code);
        page.frame_instr_ptr = offsetof(struct PyInterpreterFrame_311, prev_instr);
    } else {
        page.frame_previous = offsetof(struct PyFrameObject_36, f_back);
        page.frame_executable = offsetof(struct PyFrameObject_36, f_code);
        page.frame_instr_ptr = py.minor == 10  ? offsetof(struct PyFrameObject_310, f_lasti)
                               : py.minor >= 7 ? offsetof(struct PyFrameObject_37, f_lasti)
                                               : offsetof(struct PyFrameObject_36, f_lasti);
    }
}

/* A macro, as offsetof() takes a type. */
#define FILL_IN_CODE(type, lines) \
    do { \
        page.co_filename = object_offset(offsetof(struct type, co_filename)); \
        page.co_name = object_offset(offsetof(struct type, co_name)); \
        page.co_linetable = object_offset(offsetof(struct type, lines)); \
        page.co_firstlineno = object_offset(offsetof(struct type, co_firstlineno)); \
    } while (0)

static void fill_in_code(PyObject *code)
{
    if (py.minor >= 12)
        FILL_IN_CODE(PyCodeObject_312, co_linetable);
    else if (py.minor == 11)
        FILL_IN_CODE(PyCodeObject_311, co_linetable);
    else if (py.minor >= 8)
        FILL_IN_CODE(PyCodeObject_38, co_lnotab);
    else
        FILL_IN_CODE(PyCodeObject_36, co_lnotab);
    page.code_basicsize = (uint16_t)cpython_int_attr(cpython_type(code), "__basicsize__");
    if (py.minor >= 11)
        page.co_code_adaptive = page.code_basicsize;
    if (py.free_threaded)
        page.co_tlbc = page.co_code_adaptive - (uint16_t)sizeof(struct PyCodeArray *);
}

/* ---------------------------------------------------------------- one frame as a witness */

static void *frame_of(PyFrameObject *object)
{
    return py.minor >= 11 ? frame_interpreter_frame(object) : object;
}

static bool code_is_right(PyObject *code)
{
    return has_attribute_at(code, page.co_filename, "co_filename") &&
           has_attribute_at(code, page.co_name, "co_name") &&
           has_attribute_at(code, page.co_linetable,
                            py.minor >= 10 ? "co_linetable" : "co_lnotab") &&
           *(int *)((char *)code + page.co_firstlineno) == cpython_int_attr(code, "co_firstlineno");
}

/* The first instruction of the copy in which the frame stands, which is one of this thread; NULL:
 * it is not found.  Another thread may put a larger table in the place of this one, which CPython
 * frees when no thread that was attached then can still read it. */
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
    if (py.minor >= 11) { /* a frame that has not begun stands before its first instruction */
        const char *first = instructions_of(frame, code);
        if (!first)
            return false;
        ptrdiff_t offset = read_word(frame, page.frame_instr_ptr) - first;
        int instruction = py.PyFrame_GetLasti(object);
        return offset < 0 ? instruction < 0 : instruction == offset;
    }
    int instruction = *(int *)((char *)frame + page.frame_instr_ptr);
    if (py.minor == 10 && instruction > 0)
        instruction *= 2;
    return instruction == cpython_int_attr((PyObject *)object, "f_lasti");
}

/* The frame is one of Python code. */
static bool owner_is_right(const char *frame)
{
    return !page.frame_owner ||
           (unsigned char)frame[page.frame_owner] < (unsigned char)FRAME_OWNED_BY_CSTACK;
}

enum check_result { RIGHT, WRONG, INCONCLUSIVE };

/* Whether the frame's caller is where it is looked for, perhaps behind frames between C and Python:
 * one for each call from C, and from 3.15 on one below all others of a thread.  A frame that has
 * none says only that there is none. */
static enum check_result previous_is_right(PyFrameObject *object, const void *frame)
{
    PyFrameObject *back = frame_back(object);
    char *caller = read_word(frame, page.frame_previous), *wanted = back ? frame_of(back) : NULL;
    for (int passed = 0; py.minor >= 12 && passed < 2 && caller && caller != wanted; passed++)
        caller = read_word(caller, page.frame_previous);
    enum check_result check_result = caller != wanted ? WRONG : back ? RIGHT : INCONCLUSIVE;
    if (back)
        py.Py_DecRef((PyObject *)back);
    return check_result;
}

static enum check_result check_frame(PyFrameObject *object, PyObject *code)
{
    fill_in_frame();
    fill_in_code(code);
    void *frame = frame_of(object);
    if (!code_is_right(code) || !frame ||
        ((uintptr_t)read_word(frame, page.frame_executable) & ~CODE_TAG) != (uintptr_t)code ||
        !instr_ptr_is_right(object, frame, (char *)code) || !owner_is_right(frame)) {
        debug_log("no stack traces: frames in this CPython are not as in the release");
        return WRONG;
    }
    enum check_result back = previous_is_right(object, frame);
    if (back == WRONG)
        debug_log("no stack traces: the callers of frames are not found");
    else
        offsets_fill_values(&page, object, frame, code);
    return back;
}

/* ---------------------------------------------------------------- the thread as a witness */

/* From 3.13 on: the one among the state's first words that is the frame; 0: none or several. */
static unsigned find_frame(PyThreadState *state, const void *frame)
{
    unsigned found = 0;
    for (unsigned at = THREAD_FIRST_WORD; at < THREAD_WORDS; at++) {
        if (read_word(state, at * (unsigned)sizeof(void *)) != frame)
            continue;
        if (found)
            return 0;
        found = at;
    }
    return found * (unsigned)sizeof(void *);
}

/* Whether the innermost frame of the calling thread is found, which this one may be. */
static bool fill_in_thread_frame(PyThreadState *state, const void *frame)
{
    if (py.minor >= 13) {
        page.tstate_frame = (uint16_t)find_frame(state, frame);
        return page.tstate_frame;
    }
    if (py.minor == 12) {
        page.tstate_cframe = offsetof(struct PyThreadState_312, cframe);
        page.tstate_frame = offsetof(struct PyCFrame_312, current_frame);
    } else if (py.minor == 11) {
        page.tstate_cframe = offsetof(struct PyThreadState_311, cframe);
        page.tstate_frame = offsetof(struct PyCFrame_311, current_frame);
    } else
        page.tstate_frame = offsetof(struct PyThreadState_36, frame);
    const char *from = page.tstate_cframe ? read_word(state, page.tstate_cframe) : (char *)state;
    return from && read_word(from, page.tstate_frame) == frame;
}

/* Not by the frame that a marker reports, which a hook may be about to start. */
static enum check_result check_thread(void)
{
    const char *why;
    PyThreadState *state = py.PyThreadState_Get();
    PyFrameObject *innermost = py.PyEval_GetFrame();
    /* Not in a thread that runs another interpreter than it began with. */
    if (!innermost || py.PyGILState_GetThisThreadState() != state ||
        !fill_in_thread_frame(state, frame_of(innermost)))
        return INCONCLUSIVE;
    if (!page.tstate_tls)
        page.tstate_tls = tls_slot_find(&why);
    if (page.tstate_tls)
        return offsets_fill_interpreter(&page, state) ? RIGHT : INCONCLUSIVE;
    debug_log("no stack traces without a marker: %s", why);
    return WRONG;
}

/* ---------------------------------------------------------------- both */

/* After so many frames it is as well as it can be told. */
enum { MOST_FRAMES = 100 };
static unsigned frames_checked;

/* What is not told is published as far as it goes, and compared again with the next frame. */
static void check(PyFrameObject *object, PyObject *code)
{
    struct offsets_page before = page;
    enum check_result frame = check_frame(object, code), thread = INCONCLUSIVE;
    page.lines = LINES_UNKNOWN;
    if (frame != WRONG) {
        page.lines = py.minor >= 11   ? LINES_LOCATIONS
                     : py.minor == 10 ? LINES_LINETABLE
                                      : LINES_LNOTAB;
        thread = before.tstate_tls && before.tstate_interp ? RIGHT : check_thread();
    } else
        page.tstate_tls = 0;
    if (memcmp(&page, &before, sizeof page) != 0 && !replace_page())
        debug_log("no stack traces: their page could not be mapped");
    bool told = frame == WRONG || (frame == RIGHT && thread != INCONCLUSIVE);
    offsets_decided = told || ++frames_checked >= MOST_FRAMES;
    if (!told && offsets_decided && thread == INCONCLUSIVE)
        debug_log(
            "no stack traces without a marker: the frame of a thread was not found in its state");
}

void offsets_forget_tls(void)
{
    if (!is_known)
        return;
    page.tstate_tls = 0;
    page.tstate_interp = 0;
    frames_checked = 0;
    offsets_decided = false;
}

void offsets_check(PyFrameObject *object)
{
    /* Interpreters with a GIL each may call this at once; one is enough. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    PyObject *code = frame_code(object);
    if (!code || pthread_mutex_trylock(&lock) != 0)
        return;
    if (!offsets_decided)
        check(object, code);
    pthread_mutex_unlock(&lock);
}
