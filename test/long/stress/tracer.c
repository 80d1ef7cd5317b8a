/*
 * A tracer that does to the kernel what bpftrace and SystemTap do, but quickly: it sets uprobes
 * with semaphores on the markers of a file, in all processes, and removes them.
 *
 * usage: tracer FILE CYCLES HOLD_MS [WITHOUT]
 *
 * In each cycle it takes one site of one marker, by chance, and keeps its probe for up to twice
 * HOLD_MS: to remove one the kernel needs a tenth of a second.  CYCLES 0: all sites, until SIGTERM.
 * WITHOUT: no sites of markers that have this in their name.
 * It prints "attached" when the first probes are set, and at its end the numbers of cycles and of
 * events.  Needs root; called by test/long/stress/run.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NOTE_TYPE_SDT = 3, SITES = 64 };

static struct site {
    char marker[64];
    uint64_t location, semaphore; /* offsets in the file */
} sites[SITES];
static size_t site_count;

static const char *without;

static volatile sig_atomic_t ended;

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

static void die(const char *what)
{
    const char *why = errno ? strerror(errno) : elf_errmsg(-1);
    fprintf(stderr, "tracer: %s: %s\n", what, why ? why : "it has none of the shim");
    exit(1);
}

/* ---------------------------------------------------------------- the file's markers */

static uint64_t file_offset(Elf *elf, uint64_t address)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
            address >= segment.p_vaddr && address < segment.p_vaddr + segment.p_filesz)
            return address - segment.p_vaddr + segment.p_offset;
    }
    die("an address that isn't in the file");
    return 0;
}

static void read_notes(Elf *elf, Elf_Data *data)
{
    GElf_Nhdr note;
    size_t next = 0, name, descriptor;
    while ((next = gelf_getnote(data, next, &note, &name, &descriptor)) > 0) {
        const char *bytes = (const char *)data->d_buf + descriptor;
        uint64_t link[3];
        if (note.n_type != NOTE_TYPE_SDT ||
            strcmp((const char *)data->d_buf + name, "stapsdt") != 0 || site_count == SITES)
            continue;
        memcpy(link, bytes, sizeof link);
        const char *marker = bytes + sizeof link;
        marker += strlen(marker) + 1; /* behind the provider */
        if (without && strstr(marker, without))
            continue;
        struct site *site = &sites[site_count++];
        snprintf(site->marker, sizeof site->marker, "%s", marker);
        site->location = file_offset(elf, link[0]);
        site->semaphore = file_offset(elf, link[2]);
    }
}

static void read_file(const char *path)
{
    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
    if (!elf)
        die(path);
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE)
            read_notes(elf, elf_getdata(section, NULL));
    }
    elf_end(elf);
    close(fd);
    if (site_count == 0)
        die("no markers");
}

/* ---------------------------------------------------------------- probes */

static int probes[SITES];
static size_t probe_count;

static unsigned uprobe_type(void)
{
    unsigned type = 0;
    FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
    if (!file || fscanf(file, "%u", &type) != 1)
        die("the kernel has no uprobes for perf_event_open()");
    fclose(file);
    return type;
}

/* It counts on one CPU alone, which is enough to put the probe in place everywhere. */
static void attach(const char *path, const struct site *site, int cpu)
{
    static unsigned type;
    if (!type)
        type = uprobe_type();
    struct perf_event_attr event = {
        .type = type,
        .size = sizeof event,
        .config = site->semaphore << 32,
        .config1 = (uint64_t)(uintptr_t)path,
        .config2 = site->location,
    };
    int fd = (int)syscall(SYS_perf_event_open, &event, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        die("perf_event_open");
    probes[probe_count++] = fd;
}

/* How many events there were. */
static uint64_t detach(void)
{
    uint64_t events = 0;
    while (probe_count > 0) {
        uint64_t some = 0;
        int fd = probes[--probe_count];
        if (read(fd, &some, sizeof some) == sizeof some)
            events += some;
        close(fd);
    }
    return events;
}

/* One site, by chance, or all. */
static void attach_some(const char *path, bool all)
{
    int cpu = rand() % (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (!all)
        attach(path, &sites[(size_t)rand() % site_count], cpu);
    for (size_t i = 0; all && i < site_count; i++)
        attach(path, &sites[i], cpu);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: tracer FILE CYCLES HOLD_MS [WITHOUT]\n");
        return 2;
    }
    long cycles = atol(argv[2]), hold = atol(argv[3]), done = 0;
    uint64_t events = 0;
    without = argv[4];
    srand((unsigned)getpid());
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL);
    read_file(argv[1]);
    for (; !ended && (done < cycles || cycles == 0); done++) {
        attach_some(argv[1], cycles == 0);
        if (done == 0) {
            puts("attached");
            fflush(stdout);
        }
        if (cycles == 0) {
            while (!ended)
                pause();
        } else {
            sleep_ms(rand() % (2 * hold + 1));
        }
        events += detach();
        if (done + 1 < cycles)
            sleep_ms(rand() % (hold + 1));
    }
    printf("%ld cycles, %lu events\n", done, (unsigned long)events);
    return 0;
}
