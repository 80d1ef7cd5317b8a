/*
 * See layout_values.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "layout_values.h"

#include "cpython_layout.h"
#include "debug.h"
#include "frame.h"
#include "no_gil.h"

#include <stddef.h>

static struct offsets_page *page;

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

/* ---------------------------------------------------------------- dicts */

static void fill_in_dict(void)
{
    page->ma_keys = object_offset(offsetof(struct PyDictObject, ma_keys));
    page->ma_values = object_offset(offsetof(struct PyDictObject, ma_values));
    if (py.minor >= 11) {
        page->dk_format = KEYS_LOG2;
        page->dk_indices_size = offsetof(struct PyDictKeysObject_311, dk_log2_size);
        page->dk_nentries = offsetof(struct PyDictKeysObject_311, dk_nentries);
        page->dk_indices = offsetof(struct PyDictKeysObject_311, dk_indices);
    } else {
        page->dk_format = KEYS_COUNT;
        page->dk_indices_size = offsetof(struct PyDictKeysObject_36, dk_size);
        page->dk_nentries = offsetof(struct PyDictKeysObject_36, dk_nentries);
        page->dk_indices = offsetof(struct PyDictKeysObject_36, dk_indices);
    }
}

static void fill_in_values(void)
{
    page->dv_format = py.minor <= 10   ? VALUES_IN_ORDER
                      : py.minor <= 12 ? VALUES_BEHIND_ORDER
                                       : VALUES_BEFORE_ORDER;
    page->dv_values = py.minor <= 12 ? 0 : offsetof(struct PyDictValues_313, values);
    page->dv_preheader = py.minor == 11;
}

/* Where a dict whose values are beside its keys has an entry. */
static char *entry_at(const char *keys, Py_ssize_t index, bool *of_str)
{
    const unsigned char *size = (const unsigned char *)keys + page->dk_indices_size;
    size_t indices;
    if (page->dk_format == KEYS_LOG2)
        indices = (size_t)1 << (size[1] & 31);
    else {
        size_t count = *(const size_t *)size;
        indices = count * (count <= UINT8_MAX    ? 1
                           : count <= UINT16_MAX ? 2
                           : count <= UINT32_MAX ? 4
                                                 : 8);
    }
    *of_str = page->dk_format == KEYS_LOG2 && size[2] != 0;
    size_t bytes = *of_str ? sizeof(struct PyDictUnicodeEntry) : sizeof(struct PyDictKeyEntry);
    return (char *)keys + page->dk_indices + indices + (size_t)index * bytes;
}

/* By the entry that iteration has first, and its place among the entries.  With its lock. */
static bool is_right_for_dict(PyObject *dict)
{
    Py_ssize_t next = 0;
    PyObject *key, *value;
    const char *keys = read_word(dict, page->ma_keys);
    if (!keys || read_word(dict, page->ma_values) || !py.PyDict_Next(dict, &next, &key, &value) ||
        *(const Py_ssize_t *)(keys + page->dk_nentries) < next)
        return false;
    bool of_str;
    const char *entry = entry_at(keys, next - 1, &of_str);
    const struct PyDictUnicodeEntry *both =
        (const void *)(of_str ? entry : entry + offsetof(struct PyDictKeyEntry, me_key));
    return both->me_key == key && both->me_value == value;
}

/* Whether the names of the frame's module are found. */
static bool is_right_for_globals(PyFrameObject *object, const void *frame)
{
    PyObject *globals = py.PyObject_GetAttrString((PyObject *)object, "f_globals");
    bool right = globals && read_word(frame, page->frame_f_globals) == (char *)globals;
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

/* ---------------------------------------------------------------- names of classes and functions
 */

/* Where an object has the str that is its __qualname__, in what its type's __basicsize__ counts:
 * the last such place, as it may be the __name__, too, which is before it; 0: nowhere. */
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

/* By a class that importlib has in Python: that of sys.__spec__, and its __init__(). */
static void find_qualified_names(void)
{
    PyObject *spec = cpython_sys_attr("__spec__");
    PyObject *class = spec ? cpython_type(spec) : NULL;
    if (class && cpython_type(class) != cpython_type(py.code_type)) /* not importlib's */
        class = NULL;
    PyObject *init = class ? py.PyObject_GetAttrString(class, "__init__") : NULL;
    page->ht_qualname = find_qualified_name(class);
    page->func_qualname =
        init && cpython_type(init) == py.function_type ? find_qualified_name(init) : 0;
    py.PyErr_Clear();
    if (init)
        py.Py_DecRef(init);
    if (spec)
        py.Py_DecRef(spec);
}

/* ---------------------------------------------------------------- variables */

#define FILL_IN_VARIABLES(type) \
    do { \
        page->co_flags = object_offset(offsetof(struct type, co_flags)); \
        page->co_argcount = object_offset(offsetof(struct type, co_argcount)); \
        page->co_kwonlyargcount = object_offset(offsetof(struct type, co_kwonlyargcount)); \
    } while (0)

static void fill_in_code_variables(void)
{
    if (py.minor >= 12)
        FILL_IN_VARIABLES(PyCodeObject_312);
    else if (py.minor == 11)
        FILL_IN_VARIABLES(PyCodeObject_311);
    else if (py.minor >= 8)
        FILL_IN_VARIABLES(PyCodeObject_38);
    else
        FILL_IN_VARIABLES(PyCodeObject_36);
    if (py.minor >= 11) {
        page->co_varnames =
            object_offset(py.minor == 11 ? offsetof(struct PyCodeObject_311, co_localsplusnames)
                                         : offsetof(struct PyCodeObject_312, co_localsplusnames));
        page->co_localspluskinds = page->co_varnames + (uint16_t)sizeof(void *);
    } else if (py.minor >= 8) {
        page->co_varnames = offsetof(struct PyCodeObject_38, co_varnames);
        page->co_cellvars = offsetof(struct PyCodeObject_38, co_cellvars);
        page->co_freevars = offsetof(struct PyCodeObject_38, co_freevars);
    } else {
        page->co_varnames = offsetof(struct PyCodeObject_36, co_varnames);
        page->co_cellvars = offsetof(struct PyCodeObject_36, co_cellvars);
        page->co_freevars = offsetof(struct PyCodeObject_36, co_freevars);
    }
}

static bool has_int(PyObject *code, unsigned offset, const char *attribute)
{
    return *(int *)((char *)code + offset) == cpython_int_attr(code, attribute);
}

/* From 3.11 on the names have no attribute: they stand before the file's, which layout.c has
 * compared. */
static bool is_right_for_variables(PyFrameObject *object, PyObject *code)
{
    size_t basicsize = (size_t)cpython_int_attr(cpython_type((PyObject *)object), "__basicsize__");
    page->frame_localsplus = (uint16_t)frame_variables_offset(py.minor, basicsize);
    return frame_basicsize(py.minor, page->frame_localsplus) + py.ob_base_offset == basicsize &&
           has_int(code, page->co_flags, "co_flags") &&
           has_int(code, page->co_argcount, "co_argcount") &&
           has_int(code, page->co_kwonlyargcount, "co_kwonlyargcount") &&
           (page->co_localspluskinds
                ? page->co_localspluskinds + sizeof(void *) == page->co_filename
                : has_attribute_at(code, page->co_varnames, "co_varnames") &&
                      has_attribute_at(code, page->co_cellvars, "co_cellvars") &&
                      has_attribute_at(code, page->co_freevars, "co_freevars"));
}

void offsets_fill_values(struct offsets_page *in, PyFrameObject *object, const void *frame,
                         PyObject *code)
{
    page = in;
    fill_in_dict();
    fill_in_values();
    page->frame_f_globals = py.minor >= 12   ? offsetof(struct PyInterpreterFrame_312, f_globals)
                            : py.minor == 11 ? offsetof(struct PyInterpreterFrame_311, f_globals)
                                             : offsetof(struct PyFrameObject_36, f_globals);
    page->frame_f_locals = py.minor >= 12   ? offsetof(struct PyInterpreterFrame_312, f_locals)
                           : py.minor == 11 ? offsetof(struct PyInterpreterFrame_311, f_locals)
                                            : offsetof(struct PyFrameObject_36, f_locals);
    if (!is_right_for_globals(object, frame)) {
        debug_log(
            "no values, and no names of modules: dicts in this CPython are not as in the release");
        page->frame_f_globals = 0;
        page->dk_format = KEYS_UNKNOWN;
    }
    find_qualified_names();
    page->tuple_ob_item = (uint16_t)cpython_int_attr(py.tuple_type, "__basicsize__");
    fill_in_code_variables();
    if (!is_right_for_variables(object, code)) {
        debug_log("no values: the variables of frames in this CPython are not as in the release");
        page->frame_localsplus = 0;
    }
}
