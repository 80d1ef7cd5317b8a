/*
 * SPDX-License-Identifier: MIT
 */
#include "no_gil.h"

#include "thread_states.h"

struct call {
    void (*act)(void *);
    void *data;
};

/* For the first object that is found; 0: no further one. */
static int on_object(PyObject *object, void *data)
{
    const struct call *call = data;
    (void)object;
    call->act(call->data);
    return 0;
}

/* CPython stops the world to show all objects that the collector knows (Python/
 * gc_free_threading.c, PyUnstable_GC_VisitObjects), which is its only exported way to do so. */
void stop_the_world_call(void (*act)(void *), void *data)
{
    if (!can_stop_the_world())
        return;
    if (py.free_threaded)
        py.PyUnstable_GC_VisitObjects(on_object, &(struct call){act, data});
    else
        act(data);
}
