/*
 * The memory of the process in which the probe runs, and the types of the objects in it.  A part of
 * python_objects.stp.in, which includes it first.
 *
 * SPDX-License-Identifier: MIT
 */

/* ---- the process's memory */

/* Whether all of it could be read.  Also in an interrupt, where SystemTap's own functions don't read.  Inline, because
 * the kernel checks what it copies to unless the size is a constant (CONFIG_HARDENED_USERCOPY). */
static __always_inline int python_read(void *to, unsigned long from, unsigned long size)
{
    unsigned long left;
    if (size > TASK_SIZE || from > TASK_SIZE - size)
        return 0;
    pagefault_disable();
    left = __copy_from_user_inatomic(to, (const void __user *)from, size);
    pagefault_enable();
    return left == 0;
}

/* Whether the process is one of 32 bits: what is known here of objects is of 64. */
static int python_is_narrow(void)
{
    return (u64)TASK_SIZE <= 1ULL << 32;
}

/* Words at these offsets, which are u16, and perhaps a byte: the kernel opens the process's memory once for all of
 * them, which takes longer than to read them.  Whether all could be read. */
static int python_read_words(u64 *words, const unsigned *offsets, int count, unsigned long from, u8 *byte, unsigned byte_offset)
{
    int i;
    if (python_is_narrow())
        return 0;
#ifdef user_read_access_begin
    enum { PYTHON_SPAN = U16_MAX + sizeof *words };
    if (from > TASK_SIZE - PYTHON_SPAN)
        return 0;
    pagefault_disable();
    if (!user_read_access_begin((const void __user *)from, PYTHON_SPAN))
        goto closed;
    for (i = 0; i < count; i++)
        unsafe_get_user(words[i], (const u64 __user *)(from + offsets[i]), failed);
    if (byte)
        unsafe_get_user(*byte, (const u8 __user *)(from + byte_offset), failed);
    user_read_access_end();
    pagefault_enable();
    return 1;
failed:
    user_read_access_end();
closed:
    pagefault_enable();
    return 0;
#else
    for (i = 0; i < count; i++)
        if (!python_read(&words[i], from + offsets[i], sizeof *words))
            return 0;
    return !byte || python_read(byte, from + byte_offset, 1);
#endif
}

/* 0 if it can't be read.  As above, which is quicker than a copy. */
static unsigned long python_word(unsigned long at)
{
    static const unsigned here[] = {0};
    u64 word;
    return python_read_words(&word, here, 1, at, NULL, 0) ? word : 0;
}

/* Its first four bytes. */
static u32 python_low_u32(u64 word)
{
    u32 half;
    memcpy(&half, &word, sizeof half);
    return half;
}

/* Bytes one after another, read by the piece. */
struct python_bytes {
    unsigned long at, end;
    unsigned have, used;
    int failed; /* something could not be read */
    unsigned char piece[64];
};

/* -1 at the end, and if nothing can be read. */
static int python_byte(struct python_bytes *bytes)
{
    if (bytes->used == bytes->have) {
        /* not beyond a page that may be the last one */
        unsigned long left = bytes->end - bytes->at;
        unsigned long page = PAGE_SIZE - (bytes->at & (PAGE_SIZE - 1));
        bytes->have = min3(left, page, (unsigned long)sizeof bytes->piece);
        bytes->used = 0;
        if (bytes->have == 0 || !python_read(bytes->piece, bytes->at, bytes->have)) {
            bytes->failed |= bytes->have != 0;
            bytes->have = 0;
            bytes->end = bytes->at;
            return -1;
        }
        bytes->at += bytes->have;
    }
    return bytes->piece[bytes->used++];
}

/* ---- types */

/* What the page has that may be at this address; 0: it is not there. */
static int python_ob_base_offset_at(unsigned long address, u16 *shift)
{
    static const unsigned offsets[] = {offsetof(struct offsets_page, magic), offsetof(struct offsets_page, ob_base_offset)};
    u64 words[2];
    if (!python_read_words(words, offsets, 2, address, NULL, 0))
        return 0;
    memcpy(shift, &words[1], sizeof *shift);
    return python_low_u32(words[0]) == OFFSETS_MAGIC;
}

/* How much longer the head of each object is in this process (layout_page.h): 0 but in a free-threaded build. */
static unsigned python_ob_base_offset(void)
{
    u16 shift;
    return python_ob_base_offset_at((unsigned long)OFFSETS_ADDRESS, &shift) ||
                   python_ob_base_offset_at((unsigned long)OFFSETS_LOW_ADDRESS, &shift) ?
               shift :
               0;
}

/* Include/object.h: PyObject and PyVarObject.  This and all structs and offsets of objects below are what is behind so
 * many bytes; those of layout_page.h are from the start of an object. */
struct PyObject_head {
    u64 references, type;
};
struct PyVarObject_head {
    struct PyObject_head object;
    u64 size;
};

/* Include/object.h: tp_flags */
enum {
    PYTHON_STATIC_BUILTIN = 1 << 1, /* 3.12+ */
    PYTHON_HEAP = 1 << 9,           /* of a class statement */
    PYTHON_LONG = 1 << 24,
    PYTHON_LIST = 1 << 25,
    PYTHON_TUPLE = 1 << 26,
    PYTHON_BYTES = 1 << 27,
    PYTHON_UNICODE = 1 << 28,
};

/* Include/cpython/object.h: struct _typeobject, the same from 3.6 on, as far as tp_base. */
enum { PYTHON_TP_NAME = 24, PYTHON_TP_BASICSIZE = 32, PYTHON_TP_ITEMSIZE = 40, PYTHON_TP_FLAGS = 168, PYTHON_TP_BASE = 256 };

struct python_type {
    u64 name, basicsize, itemsize, flags, base;
    unsigned shift; /* python_ob_base_offset(), of types and objects */
};

static int python_read_type_at(struct python_type *type, unsigned long address, unsigned shift)
{
    static const unsigned offsets[] = {PYTHON_TP_NAME, PYTHON_TP_BASICSIZE, PYTHON_TP_ITEMSIZE, PYTHON_TP_FLAGS, PYTHON_TP_BASE};
    type->shift = shift;
    return address && python_read_words((u64 *)type, offsets, ARRAY_SIZE(offsets), address + shift, NULL, 0);
}

static int python_read_type(struct python_type *type, unsigned long object, unsigned shift)
{
    return python_read_type_at(type, python_word(object + shift + offsetof(struct PyObject_head, type)), shift);
}

/* Follows the bases to the built-in type that has the flag. */
static int python_find_base(struct python_type *type, u64 flag)
{
    int levels;
    for (levels = 0; levels < 64; levels++) {
        struct python_type base;
        if (!python_read_type_at(&base, type->base, type->shift))
            return 0;
        if (!(base.flags & flag))
            return 1;
        *type = base;
    }
    return 0;
}

/* The same as an object shows it, in a process without the shim: the type of types is its own. */
static unsigned python_ob_base_offset_of(unsigned long object)
{
    static const unsigned shifts[] = {0, 16};
    unsigned long type;
    int i;
    for (i = 0; i < (int)ARRAY_SIZE(shifts); i++) {
        unsigned at = shifts[i] + offsetof(struct PyObject_head, type);
        type = python_word(python_word(object + at) + at);
        if (type && python_word(type + at) == type)
            return shifts[i];
    }
    return 0;
}

/* Whether it is the built-in type of that name. */
static int python_type_is(const struct python_type *type, const char *name)
{
    char known[24] = "";
    int size = strlen(name) + 1; /* of ours: at most as large */
    return !(type->flags & PYTHON_HEAP) && python_read(known, type->name, size) && memcmp(known, name, size) == 0;
}

/* Whether it is bool: the built-in type that is derived from int, where its name is not in memory. */
static int python_type_is_bool(const struct python_type *type)
{
    struct python_type base;
    char known[5];
    if (type->flags & PYTHON_HEAP)
        return 0;
    if (python_read(known, type->name, sizeof known))
        return memcmp(known, "bool", sizeof known) == 0;
    return python_read_type_at(&base, type->base, type->shift) && base.flags & PYTHON_LONG;
}
