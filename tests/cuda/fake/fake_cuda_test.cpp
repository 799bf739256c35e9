#include "helpers.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

using namespace fake_cuda_test;
using fake_cuda::order;

TEST_CASE("after a wait for an event, the copies and kernels before it have run in order") {
  for_each_world([](order) {
    pinned<int> source(3000);
    on_device<int> target(3000);
    a_stream s;
    an_event done;
    std::vector<int> log;
    note first{&log, 1}, second{&log, 2};
    std::fill_n(source.data, 3000, 7);
    ok(cudaLaunchHostFunc(s, note::write, &first));
    ok(cudaMemcpyAsync(target, source, target.bytes, cudaMemcpyHostToDevice, s));
    ok(cudaLaunchHostFunc(s, note::write, &second));
    ok(cudaEventRecord(done, s));
    ok(cudaEventSynchronize(done));
    CHECK(log == std::vector{1, 2});
    CHECK(target.values() == std::vector(3000, 7));
    CHECK(cudaEventQuery(done) == cudaSuccess);
  });
}

TEST_CASE("late: operations run only when a call waits for them, with their dependencies") {
  fake_cuda::reset({.when = order::late});
  a_stream a, b;
  an_event in_a, in_b;
  std::vector<int> log;
  note one{&log, 1}, two{&log, 2}, three{&log, 3};
  ok(cudaLaunchHostFunc(a, note::write, &one));
  ok(cudaEventRecord(in_a, a));
  ok(cudaLaunchHostFunc(a, note::write, &two));
  ok(cudaLaunchHostFunc(b, note::write, &three));
  ok(cudaEventRecord(in_b, b));
  CHECK(log.empty());
  CHECK(cudaEventQuery(in_a) == cudaErrorNotReady);
  ok(cudaEventSynchronize(in_a));
  CHECK(log == std::vector{1});
  CHECK(cudaStreamQuery(a) == cudaErrorNotReady);
  ok(cudaStreamSynchronize(a));
  CHECK(log == std::vector{1, 2});
  CHECK(fake_cuda::pending() == 2);
  fake_cuda::run_all();
  CHECK(log == std::vector{1, 2, 3});
}

TEST_CASE("late: an operation runs after enough queries") {
  fake_cuda::reset({.when = order::late, .polls = 3});
  a_stream s;
  an_event e;
  std::vector<int> log;
  note one{&log, 1}, two{&log, 2};
  ok(cudaLaunchHostFunc(s, note::write, &one));
  ok(cudaEventRecord(e, s));
  ok(cudaLaunchHostFunc(s, note::write, &two));
  CHECK(cudaEventQuery(e) == cudaErrorNotReady);
  CHECK(cudaEventQuery(e) == cudaErrorNotReady);
  CHECK(cudaEventQuery(e) == cudaSuccess);
  CHECK(log == std::vector{1});
  for (int i = 0; i < 2; ++i) CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
  CHECK(cudaStreamQuery(s) == cudaSuccess);
}

TEST_CASE("early: operations are complete when the call returns") {
  fake_cuda::reset({.when = order::early});
  a_stream s;
  std::vector<int> log;
  note one{&log, 1};
  ok(cudaLaunchHostFunc(s, note::write, &one));
  CHECK(log == std::vector{1});
  CHECK(fake_cuda::pending() == 0);
}

TEST_CASE("shuffled: two streams interleave, each in its own order, in many ways, and a seed reproduces its way") {
  const auto run = [](std::uint64_t seed) {
    fake_cuda::reset({.seed = seed, .when = order::shuffled});
    a_stream a, b;
    std::vector<int> log;
    std::vector<note> notes;
    for (int i = 0; i < 6; ++i) notes.push_back({&log, i});
    for (int i = 0; i < 6; ++i) ok(cudaLaunchHostFunc(i % 2 ? a.handle : b.handle, note::write, &notes[i]));
    ok(cudaDeviceSynchronize());
    return log;
  };
  std::set<std::vector<int>> ways;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<int> log = run(seed);
    CHECK(log.size() == 6);
    for (int i = 0; i + 2 < 6; ++i) {
      CHECK(std::find(log.begin(), log.end(), i) < std::find(log.begin(), log.end(), i + 2));
    }
    CHECK(run(seed) == log);
    ways.insert(log);
  }
  CHECK(ways.size() > 5);
}

TEST_CASE("shuffled: the pages of a copy arrive out of order, and other streams continue in between") {
  bool out_of_order = false, overtaken = false;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    fake_cuda::reset({.seed = seed, .when = order::shuffled});
    pinned<unsigned char> source(8 * page);
    on_device<unsigned char> target(8 * page);
    a_stream copies, kernels;
    std::fill_n(source.data, source.bytes, static_cast<unsigned char>(1));
    ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, copies));
    for (int i = 0; i < 8; ++i) {
      (void)cudaStreamQuery(copies);
      const std::vector<unsigned char> now = target.values();
      const auto landed = static_cast<std::size_t>(std::count(now.begin(), now.end(), 1)) / page;
      if (landed > 0 && landed < 8) {
        const auto ahead = static_cast<std::size_t>(std::find(now.begin(), now.end(), fake_cuda::poison) - now.begin());
        if (ahead / page < landed) out_of_order = true;
        std::vector<int> log;
        note n{&log, 1};
        ok(cudaLaunchHostFunc(kernels, note::write, &n));
        ok(cudaStreamSynchronize(kernels));
        if (cudaStreamQuery(copies) == cudaErrorNotReady) overtaken = true;
      }
    }
    ok(cudaStreamSynchronize(copies));
    CHECK(target.values() == std::vector<unsigned char>(8 * page, 1));
  }
  CHECK(out_of_order);
  CHECK(overtaken);
}

TEST_CASE("shuffled: a wait does not run a copy in one step either") {
  bool seen_half_done = false;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    fake_cuda::reset({.seed = seed, .when = order::shuffled});
    pinned<unsigned char> source(64 * page);
    on_device<unsigned char> target(64 * page);
    a_stream copies, kernels;
    std::fill_n(source.data, source.bytes, static_cast<unsigned char>(1));
    struct counts {
      const unsigned char* from;
      std::vector<std::size_t> landed{};
    } c{target.data};
    // A graph, so that one call enqueues them all.
    ok(cudaStreamBeginCapture(kernels, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 60; ++i) {
      ok(cudaLaunchHostFunc(kernels, [](void* p) {
        auto* mine = static_cast<counts*>(p);
        mine->landed.push_back(static_cast<std::size_t>(std::count(mine->from, mine->from + 64 * page, 1)) / page);
      }, &c));
    }
    cudaGraph_t graph{};
    cudaGraphExec_t executable{};
    ok(cudaStreamEndCapture(kernels, &graph));
    ok(cudaGraphInstantiate(&executable, graph, 0));
    ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, copies));
    ok(cudaGraphLaunch(executable, kernels));
    ok(cudaDeviceSynchronize());
    CHECK(c.landed.size() == 60);
    // The two calls before the wait copied at most 6 pages.
    for (const std::size_t landed : c.landed) seen_half_done |= landed > 6 && landed < 64;
  }
  CHECK(seen_half_done);
}

TEST_CASE("in the background: work runs without calls") {
  for (const order when : {order::late, order::early, order::shuffled}) {
    fake_cuda::reset({.when = when, .background_threads = 1});
    a_stream s;
    std::atomic<int> ran{0};
    ok(cudaLaunchHostFunc(s, [](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &ran));
    while (ran == 0) std::this_thread::yield();
    ok(cudaStreamSynchronize(s));
  }
}

TEST_CASE("in the background: a slow kernel only delays its own stream") {
  fake_cuda::reset({.background_threads = 2});
  a_stream slow, quick;
  struct kernel {
    std::atomic<bool> started{false}, open{false};
  } k;
  fake_cuda::next_kernel(nullptr, 0);   // a slow host function would delay the host functions of all streams
  ok(cudaLaunchHostFunc(slow, [](void* p) {
    auto* mine = static_cast<kernel*>(p);
    mine->started = true;
    while (!mine->open) std::this_thread::yield();
  }, &k));
  while (!k.started) std::this_thread::yield();
  std::vector<int> log;
  note n{&log, 1}, after{&log, 2};
  ok(cudaLaunchHostFunc(slow, note::write, &after));
  ok(cudaLaunchHostFunc(quick, note::write, &n));
  ok(cudaStreamSynchronize(quick));
  CHECK(log == std::vector{1});
  CHECK(cudaStreamQuery(slow) == cudaErrorNotReady);
  k.open = true;
  ok(cudaStreamSynchronize(slow));
  CHECK(log == std::vector{1, 2});
}

TEST_CASE("an event that was never recorded is complete, and delays no stream") {
  for_each_world([](order) {
    a_stream s;
    an_event never;
    CHECK(cudaEventQuery(never) == cudaSuccess);
    ok(cudaEventSynchronize(never));
    ok(cudaStreamWaitEvent(s, never, 0));
    CHECK(cudaStreamQuery(s) == cudaSuccess);
  });
}

TEST_CASE("recorded again, an event represents the new position; an earlier wait still waits for the old one") {
  fake_cuda::reset({.when = order::late});
  a_stream a, b, waiting;
  an_event e;
  std::vector<int> log;
  note one{&log, 1}, two{&log, 2}, three{&log, 3};
  ok(cudaLaunchHostFunc(a, note::write, &one));
  ok(cudaEventRecord(e, a));
  ok(cudaStreamWaitEvent(waiting, e, 0));
  ok(cudaLaunchHostFunc(waiting, note::write, &three));
  ok(cudaLaunchHostFunc(b, note::write, &two));
  ok(cudaEventRecord(e, b));
  ok(cudaEventSynchronize(e));
  CHECK(log == std::vector{2});       // the new position, not the old one
  ok(cudaStreamSynchronize(waiting));
  CHECK(log == std::vector{2, 1, 3}); // the wait was for the old one
}

TEST_CASE("a stream's wait for an event delays later work, in every order of execution") {
  for_each_world([](order) {
    a_stream producer, consumer;
    an_event ready;
    pinned<int> source(5000);
    on_device<int> target(5000);
    std::fill_n(source.data, 5000, 3);
    struct observed {
      int* from;
      int first = 0, last = 0;
    } s{target};
    ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, producer));
    ok(cudaEventRecord(ready, producer));
    ok(cudaStreamWaitEvent(consumer, ready, 0));
    ok(cudaLaunchHostFunc(consumer, [](void* p) {
      auto* mine = static_cast<observed*>(p);
      mine->first = mine->from[0];
      mine->last = mine->from[4999];
    }, &s));
    ok(cudaStreamSynchronize(consumer));
    CHECK(s.first == 3);
    CHECK(s.last == 3);
  });
}

TEST_CASE("the legacy stream and blocking streams wait for each other; non-blocking ones are independent") {
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    fake_cuda::reset({.when = order::late});
    a_stream s(blocking ? cudaStreamDefault : cudaStreamNonBlocking);
    std::vector<int> log;
    note one{&log, 1}, two{&log, 2}, three{&log, 3};
    an_event in_legacy;
    ok(cudaLaunchHostFunc(s, note::write, &one));
    ok(cudaLaunchHostFunc(nullptr, note::write, &two));
    ok(cudaEventRecord(in_legacy, cudaStreamLegacy));
    ok(cudaLaunchHostFunc(s, note::write, &three));
    ok(cudaEventSynchronize(in_legacy));
    CHECK(log == (blocking ? std::vector{1, 2} : std::vector{2}));
    fake_cuda::reset({.when = order::late});
  }
  // Conversely, later work of a blocking stream waits for work of the legacy stream.
  a_stream s(cudaStreamDefault), free_one;
  std::vector<int> log;
  note one{&log, 1}, two{&log, 2}, three{&log, 3};
  ok(cudaLaunchHostFunc(cudaStreamLegacy, note::write, &one));
  ok(cudaLaunchHostFunc(free_one, note::write, &three));
  ok(cudaLaunchHostFunc(s, note::write, &two));
  ok(cudaStreamSynchronize(free_one));
  CHECK(log == std::vector{3});
  ok(cudaStreamSynchronize(s));
  CHECK(log == std::vector{3, 1, 2});
}

TEST_CASE("waiting for the legacy stream waits for blocking streams, and the per-thread stream is one of them") {
  fake_cuda::reset({.when = order::late});
  std::vector<int> log;
  note one{&log, 1};
  ok(cudaLaunchHostFunc(cudaStreamPerThread, note::write, &one));
  CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
  std::thread other([] { CHECK(cudaStreamQuery(cudaStreamPerThread) == cudaSuccess); });   // its own one
  other.join();
  ok(cudaStreamSynchronize(nullptr));
  CHECK(log == std::vector{1});
}

TEST_CASE("a stream or an event may be destroyed with pending work, which still runs") {
  for_each_world([](order) {
    std::vector<int> log;
    note one{&log, 1};
    {
      a_stream s;
      an_event e;
      ok(cudaLaunchHostFunc(s, note::write, &one));
      ok(cudaEventRecord(e, s));
    }
    ok(cudaDeviceSynchronize());
    CHECK(log == std::vector{1});
  });
}

TEST_CASE("the handle of a destroyed object is reused, and a violation until then") {
  fake_cuda::reset();
  cudaStream_t s = nullptr, next_s = nullptr;
  cudaEvent_t e = nullptr, next_e = nullptr;
  ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  ok(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  ok(cudaStreamDestroy(s));
  ok(cudaEventDestroy(e));
  CHECK(cudaStreamDestroy(s) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventQuery(e) == cudaErrorInvalidResourceHandle);
  const std::string stream_text = "a stream was used after it was destroyed",
                    event_text = "an event was used after it was destroyed";
  CHECK(fake_cuda::violations() == std::vector{stream_text, event_text});
  ok(cudaStreamCreateWithFlags(&next_s, cudaStreamNonBlocking));
  ok(cudaEventCreateWithFlags(&next_e, cudaEventDisableTiming));
  CHECK(next_s == s);
  CHECK(next_e == e);
  ok(cudaEventRecord(e, s));   // the old handles are those of the new objects
  ok(cudaEventSynchronize(next_e));
  CHECK(fake_cuda::violations().size() == 2);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  ok(cudaStreamDestroy(next_s));
  ok(cudaEventDestroy(next_e));
  fake_cuda::reset();
}

TEST_CASE("times between events: only for events that record times and are complete") {
  fake_cuda::reset({.when = order::late});
  a_stream s;
  an_event from(cudaEventDefault), to(cudaEventDefault), untimed;
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, from, to) == cudaErrorInvalidResourceHandle);
  ok(cudaEventRecord(from, s));
  ok(cudaEventRecord(untimed, s));
  ok(cudaEventRecord(to, s));
  CHECK(cudaEventElapsedTime(&milliseconds, from, to) == cudaErrorNotReady);
  CHECK(fake_cuda::violations() ==
        std::vector<std::string>{"cudaEventElapsedTime: polled before the events completed"});
  ok(cudaStreamSynchronize(s));
  ok(cudaEventElapsedTime(&milliseconds, from, to));
  CHECK(milliseconds >= 0);
  CHECK(cudaEventElapsedTime(&milliseconds, from, untimed) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("many threads: each thread's batches arrive complete through a ring that events protect") {
  for_each_world([](order) {
    constexpr int threads = 3, batches = 12, slots = 2, count = 2048;   // slots of full pages
    const auto pipeline = [](int number) {
      a_stream copies, step;
      std::vector<an_event> copied(slots), released(slots);
      pinned<int> host(slots * count);
      on_device<int> ring(slots * count);
      struct sum {
        const int* from;
        long total = 0;
      };
      std::vector<sum> sums(batches);
      for (int b = 0; b < batches; ++b) {
        const int slot = b % slots;
        int *const source = host + slot * count, *const target = ring + slot * count;
        ok(cudaEventSynchronize(copied[slot]));   // the host's slot is free again
        std::fill_n(source, count, number * 100 + b);
        ok(cudaStreamWaitEvent(copies, released[slot], 0));
        ok(cudaMemcpyAsync(target, source, count * sizeof(int), cudaMemcpyHostToDevice, copies));
        ok(cudaEventRecord(copied[slot], copies));
        ok(cudaStreamWaitEvent(step, copied[slot], 0));
        sums[b].from = target;
        ok(cudaLaunchHostFunc(step, [](void* p) {
          auto* mine = static_cast<sum*>(p);
          for (int i = 0; i < count; ++i) mine->total += mine->from[i];
        }, &sums[b]));
        ok(cudaEventRecord(released[slot], step));
      }
      ok(cudaStreamSynchronize(step));
      for (int b = 0; b < batches; ++b) CHECK(sums[b].total == static_cast<long>(count) * (number * 100 + b));
    };
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) running.emplace_back(pipeline, i);
    for (std::thread& t : running) t.join();
  });
}
