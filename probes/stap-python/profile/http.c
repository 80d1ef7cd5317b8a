/*
 * SPDX-License-Identifier: MIT
 */

#include "profile/http.h"

#include "generated/installed.h"
#include "lib/util.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- libcurl */

/* The numbers and structs of https://github.com/curl/curl/blob/curl-7_29_0/include/curl, of which
 * libcurl.so.4 changes none. */
enum {
    CURL_GLOBAL_DEFAULT = 3,
    CURLOPT_POSTFIELDSIZE = 60,
    CURLOPT_NOSIGNAL = 99,
    CURLOPT_TIMEOUT_MS = 155,
    CURLOPT_CONNECTTIMEOUT_MS = 156,
    CURLOPT_WRITEDATA = 10001,
    CURLOPT_URL = 10002,
    CURLOPT_USERPWD = 10005,
    CURLOPT_ERRORBUFFER = 10010,
    CURLOPT_POSTFIELDS = 10015,
    CURLOPT_USERAGENT = 10018,
    CURLOPT_HTTPHEADER = 10023,
    CURLOPT_WRITEFUNCTION = 20011,
    CURLINFO_RESPONSE_CODE = 0x200002,
    CURLMSG_DONE = 1,
    CURL_WAIT_POLLIN = 1,
    CURL_ERROR_SIZE = 256
};

struct curl_message {
    int kind;
    void *easy;
    union {
        void *other;
        int result;
    } data;
};

struct curl_waitfd {
    int fd;
    short events, revents;
};

static struct {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    const char *(*easy_strerror)(int code);
    void *(*slist_append)(void *list, const char *text);
    void *(*multi_init)(void);
    int (*multi_add_handle)(void *multi, void *easy);
    int (*multi_remove_handle)(void *multi, void *easy);
    int (*multi_perform)(void *multi, int *running);
    int (*multi_wait)(void *multi, struct curl_waitfd *fds, unsigned count, int ms, int *ready);
    struct curl_message *(*multi_info_read)(void *multi, int *left);
} curl;

static void *multi, *easy;
static bool is_sending;
static char error[CURL_ERROR_SIZE];
static char answer[200]; /* its begin */
static size_t answer_length;

static void load_functions(void *library)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {{"curl_global_init", &curl.global_init},
                     {"curl_easy_init", &curl.easy_init},
                     {"curl_easy_setopt", &curl.easy_setopt},
                     {"curl_easy_getinfo", &curl.easy_getinfo},
                     {"curl_easy_strerror", &curl.easy_strerror},
                     {"curl_slist_append", &curl.slist_append},
                     {"curl_multi_init", &curl.multi_init},
                     {"curl_multi_add_handle", &curl.multi_add_handle},
                     {"curl_multi_remove_handle", &curl.multi_remove_handle},
                     {"curl_multi_perform", &curl.multi_perform},
                     {"curl_multi_wait", &curl.multi_wait},
                     {"curl_multi_info_read", &curl.multi_info_read}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            die(FAILED, "record: libcurl has no %s: it is older than 7.28", functions[i].name);
        memcpy(functions[i].function, &function, sizeof function);
    }
}

static size_t keep_answer(const char *bytes, size_t size, size_t count, void *data)
{
    size_t length = size * count, rest = sizeof answer - 1 - answer_length;
    (void)data;
    memcpy(answer + answer_length, bytes, length < rest ? length : rest);
    answer_length += length < rest ? length : rest;
    return length;
}

void http_load(void)
{
    enum { CONNECT_MS = 5000, ALL_MS = 10000 };
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die(FAILED,
            "record: libcurl, which sends profiles, cannot be loaded: %s: it is in "
            "libcurl3-gnutls (Debian) and libcurl (Fedora)",
            dlerror());
    load_functions(library);
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != 0 || !(multi = curl.multi_init()) ||
        !(easy = curl.easy_init()))
        die(FAILED, "record: libcurl, which sends profiles, does not start");
    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ALL_MS);
    curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    curl.easy_setopt(easy, CURLOPT_USERAGENT, "stap-python/" PACKAGE_VERSION);
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_answer);
}

/* ---------------------------------------------------------------- requests */

void http_set(char *const *headers, const char *password)
{
    /* Without "Expect:", libcurl waits a second for servers that do not know "100 Continue". */
    void *list = curl.slist_append(NULL, "Expect:");
    list = curl.slist_append(list, "Content-Type: application/octet-stream");
    for (; *headers; headers++)
        list = curl.slist_append(list, *headers);
    curl.easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    curl.easy_setopt(easy, CURLOPT_USERPWD, password);
}

void http_cancel(void)
{
    if (is_sending)
        curl.multi_remove_handle(multi, easy);
    is_sending = false;
}

void http_post(const char *url, const void *body, size_t size)
{
    http_cancel();
    memset(answer, 0, sizeof answer);
    answer_length = 0;
    error[0] = '\0';
    curl.easy_setopt(easy, CURLOPT_URL, url);
    curl.easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)size);
    curl.multi_add_handle(multi, easy);
    is_sending = true;
}

/* "Failed to connect to localhost port 1 after 3 ms: ..." without the time: what fails twice for
 * the same reason has the same text, and push.c says it once. */
static void remove_time(char *text)
{
    char *after = strstr(text, " after ");
    size_t digits = after ? strspn(after + strlen(" after "), "0123456789") : 0;
    char *end = digits ? after + strlen(" after ") + digits : NULL;
    if (end && strncmp(end, " ms", strlen(" ms")) == 0)
        memmove(after, end + strlen(" ms"), strlen(end + strlen(" ms")) + 1);
}

static const char *why_not(int code, long status)
{
    static char text[CURL_ERROR_SIZE + sizeof answer];
    if (code != 0) {
        remove_time(error);
        return error[0] ? error : curl.easy_strerror(code);
    }
    if (status >= 200 && status <= 299)
        return NULL;
    answer[strcspn(answer, "\r\n")] = '\0';
    snprintf(text, sizeof text, "the server answers %ld%s%s", status, *answer ? ": " : "", answer);
    return text;
}

struct http_result http_wait(int fd, int ms)
{
    struct http_result result = {.has_ended = false};
    struct curl_waitfd ready = {fd, CURL_WAIT_POLLIN, 0};
    struct curl_message *message;
    int running, left;
    curl.multi_perform(multi, &running);
    if (!is_sending || running)
        curl.multi_wait(multi, &ready, 1, ms, &left);
    curl.multi_perform(multi, &running);
    while ((message = curl.multi_info_read(multi, &left))) {
        if (message->kind != CURLMSG_DONE)
            continue;
        int code = message->data.result;
        if (curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &result.status) != 0 || code != 0)
            result.status = 0;
        result.why = why_not(code, result.status);
        result.has_ended = true;
        http_cancel();
    }
    return result;
}
