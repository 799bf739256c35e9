// Evaluation with MPI: each sample counts once, and the accuracy does not depend on the number of ranks.
//
//   evaluate --model shapes.bin --data 'val-{000..003}.tar'                  # one process, without mpirun
//   mpirun --oversubscribe -n 4 evaluate --model shapes.bin --data ...       # any number of ranks
//   evaluate --model shapes.bin --data ... --predictions out                 # out-0.txt: key, label and prediction
//
// The model is one of train_images or mpi_train; make_shapes writes such data.
// Errors: a rank prints its exception, then ends all ranks. Threads: only the main thread calls MPI.
#include "command_line.hpp"
#include "network.hpp"

#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include <mpi.h>

#include <fstream>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 32;   // of the input of the network, in pixels

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example prepare(const mr::record& r) {
  return {mr::jpeg(r["jpg;jpeg"]).resize_shorter(side).center_crop(side), r["cls"].as<std::int32_t>()};
}

void evaluate(command_line& args) {
  const std::string model = args.text("--model", ""), data = args.text("--data", "");
  const std::string predictions = args.text("--predictions", "");
  const auto size = args.number("--batch", std::size_t{64}), classes = args.number("--classes", std::size_t{10});
  if (model.empty() || data.empty() || !args.rest().empty()) args.refuse("expected --model FILE and --data SHARDS");
  const mr::world world = mr::world_from_launcher();
  network net({.side = side, .classes = classes});
  net.load(model);
  std::ofstream list;
  if (!predictions.empty()) list.open(predictions + "-" + std::to_string(world.rank) + ".txt");

  mr::session_options options{.world = world};
  if (world.rank > 0) options.notice = mr::quiet;
  mr::session run{mr::shards(data, {.fields = {"jpg;jpeg", "cls"}}) | mr::map(prepare) |
                      mr::batch<&example::pixels, &example::label>({.size = size, .pad_last = true, .keys = true}),
                  options};
  std::uint64_t mine[2] = {}, all[2] = {};   // samples, and correctly classified samples
  for (auto& b : run) {
    const auto [pixels, labels] = b.columns();
    net.evaluate(pixels, labels);
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (b.valid()[i] == 0) continue;   // padding
      const auto row = net.logits()[i].span();
      const auto predicted = static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      ++mine[0];
      mine[1] += predicted == labels[i] ? 1 : 0;
      if (list.is_open()) list << b.keys()[i] << ' ' << labels[i] << ' ' << predicted << '\n';
    }
    // All ranks have the same number of batches, so a collective operation may follow each of them.
    MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world.rank == 0) std::fprintf(stderr, "\r%llu samples", static_cast<unsigned long long>(all[0]));
  }
  if (!predictions.empty() && !list.flush())
    throw mr::io_error("the predictions cannot be written", "Check --predictions and the disk");
  if (world.rank == 0)
    std::printf("\naccuracy: %.4f of %llu samples\n", static_cast<double>(all[1]) / static_cast<double>(all[0]),
                static_cast<unsigned long long>(all[0]));
}

}   // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const int status = run_program({argc, argv,
                                  "usage: [mpirun -n RANKS] evaluate --model FILE --data SHARDS "
                                  "[--batch N] [--classes N] [--predictions NAME]"},
                                 evaluate);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);   // the other ranks may be waiting for this one
  return MPI_Finalize();
}
