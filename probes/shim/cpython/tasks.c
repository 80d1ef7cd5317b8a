/*
 * Finds where CPython keeps the tasks of asyncio: where its release has them, or, of an
 * interpreter, near by.  A patch release or a debug build may have moved them.  In a free-threaded
 * build another thread that ends may write the interpreter's list meanwhile.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/offsets.h"
#include "shared/cpython_structs.h"

#include <stddef.h>

static uintptr_t word_at(const char *at)
{
    return LOAD_RELAXED(*(const uintptr_t *)at);
}

static bool is_address(uintptr_t word)
{
    return word && word % sizeof(void *) == 0;
}

/* Whether the list's next or prev is its head. */
static bool points_to_itself(const char *head, size_t member)
{
    return word_at(head + member) == (uintptr_t)head;
}

static bool is_empty_list(const char *head)
{
    return points_to_itself(head, offsetof(struct llist_node, next)) &&
           points_to_itself(head, offsetof(struct llist_node, prev));
}

/* Whether this can be the head of a list.  The nodes of a list that isn't empty are not read: this
 * may be something else. */
static bool may_be_list(const char *head)
{
    size_t next = offsetof(struct llist_node, next), prev = offsetof(struct llist_node, prev);
    return is_address(word_at(head + next)) && is_address(word_at(head + prev)) &&
           points_to_itself(head, next) == points_to_itself(head, prev);
}

/* The list that follows is empty, but in a free-threaded build.  Beyond it the state may end. */
static bool thread_compares(const char *state, const struct task_offsets *offsets)
{
    const char *head = state + offsets->tasks_head, *qsbr = head + sizeof(struct llist_node),
               *other = qsbr + sizeof(void *), *task = state + offsets->running_task,
               *loop = task - sizeof(void *);
    return (word_at(loop) || !word_at(task)) && (word_at(qsbr) != 0) == py.free_threaded &&
           may_be_list(head) && (py.free_threaded ? may_be_list(other) : is_empty_list(other));
}

/* tasks_head: its offset.  A PyMutex, the lock, is one byte. */
static bool interpreter_compares(const char *interpreter, size_t tasks_head)
{
    const char *head = interpreter + tasks_head, *lock = head + sizeof(struct llist_node),
               *obmalloc = lock + sizeof(void *);
    return may_be_list(head) && word_at(lock) <= UINT8_MAX && is_address(word_at(obmalloc));
}

/* Words by which the list of an interpreter may be moved. */
enum { NEAR = 16 };

/* The offset if it compares there, or the only one near by that does; 0: none or several. */
static size_t find_near(const char *interpreter, size_t offset)
{
    size_t found = 0;
    if (interpreter_compares(interpreter, offset))
        return offset;
    for (size_t at = offset - NEAR * sizeof(void *); at <= offset + NEAR * sizeof(void *);
         at += sizeof(void *)) {
        if (!interpreter_compares(interpreter, at))
            continue;
        if (found)
            return 0;
        found = at;
    }
    return found;
}

bool offsets_fill_tasks(struct offsets_page *page, const PyThreadState *state,
                        const PyInterpreterState *interpreter)
{
    const struct task_offsets *release = task_offsets(py.minor);
    bool compares = thread_compares((const char *)state, release);
    page->tstate_running_task = compares ? release->running_task : 0;
    page->tstate_tasks_head = compares ? release->tasks_head : 0;
    page->interp_tasks_head = (uint32_t)find_near(
        (const char *)interpreter,
        page->interp_modules +
            (py.free_threaded ? release->interp_tasks_head_nogil : release->interp_tasks_head));
    return compares && page->interp_tasks_head;
}
