// A plain way to use threads.
#pragma once
#include <algorithm>
#include <thread>
#include <vector>

namespace composcope {

// fn(begin, end, worker) over [0, count) in equal parts.
template <class Fn>
void parallel(long count, long threads, const Fn& fn) {
    threads = std::max(1L, std::min(threads, count));
    std::vector<std::thread> pool;
    long started = 1;
    try {
        for (; started < threads; ++started)
            pool.emplace_back(fn, count * started / threads, count * (started + 1) / threads, started);
    } catch (...) {  // the system gives no more threads: the rest is done here
    }
    fn(0L, count / threads, 0L);
    for (; started < threads; ++started) fn(count * started / threads, count * (started + 1) / threads, started);
    for (auto& thread : pool) thread.join();
}

}  // namespace composcope
