/*
 * The state of a detach: the request is in the page of shared/filter_page.h, the watcher's is here.
 *
 * SPDX-License-Identifier: MIT
 */

#include "markers/detach.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

static struct filter_page *page;

/* Guards the variables below, and the shim's writes to page->request: without the lock the page may
 * be read-only.  Nothing waits under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* LEAVING: detach_begin() has committed; ENDED: detach_done() was called.  The functions below go
 * by this variable, not by the request, which the launcher may write at any time. */
static enum { HERE, LEAVING, ENDED } watcher;

static bool sealed; /* the page is read-only */

void detach_use(struct filter_page *mapped)
{
    page = mapped;
}

void detach_publish(uint32_t attach)
{
    if (page)
        page->attach = attach;
}

void detach_publish_ids(bool lacking)
{
    if (page && page->lacks_id != lacking)
        page->lacks_id = lacking;
}

static uint32_t request(void)
{
    return page ? __atomic_load_n(&page->request, __ATOMIC_ACQUIRE) : REQUEST_NONE;
}

static void set_request(uint32_t value)
{
    __atomic_store_n(&page->request, value, __ATOMIC_RELEASE);
}

bool detach_is_requested(void)
{
    return request() != REQUEST_NONE;
}

bool detach_begin(unsigned raised)
{
    pthread_mutex_lock(&lock);
    bool requested = detach_is_requested();
    if (requested) {
        watcher = LEAVING;
        page->raised = raised;
    }
    pthread_mutex_unlock(&lock);
    return requested;
}

/* A fork may come between any two steps, and the child repeats all of them (detach_forked()): a
 * page that is read-only already must not be written. */
static void seal(void)
{
    watcher = ENDED;
    if (sealed)
        return;
    if (request() != REQUEST_DONE)
        set_request(REQUEST_DONE);
    sealed = mprotect(page, sizeof *page, PROT_READ) == 0;
}

void detach_done(void)
{
    pthread_mutex_lock(&lock);
    seal();
    pthread_mutex_unlock(&lock);
}

bool detach_has_ended(void)
{
    return __atomic_load_n(&watcher, __ATOMIC_ACQUIRE) != HERE;
}

/* Makes the page writable.  Under the lock. */
static bool open_page(void)
{
    if (!sealed)
        return true;
    if (mprotect(page, sizeof *page, PROT_READ | PROT_WRITE) != 0)
        return false;
    sealed = false;
    return true;
}

/* Only tries the lock: the caller may be any thread of the program. */
bool detach_undo(bool *ended)
{
    if (!detach_is_requested() || pthread_mutex_trylock(&lock) != 0)
        return false;
    bool undone = watcher != LEAVING && open_page();
    if (undone) {
        *ended = watcher == ENDED;
        set_request(REQUEST_NONE);
        watcher = HERE;
    }
    pthread_mutex_unlock(&lock);
    return undone;
}

void detach_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    if (watcher != HERE)
        seal();
}
