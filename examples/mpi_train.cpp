// Data-parallel training with MPI. The model has the same bytes for any number of ranks, and after any number of
// interruptions.
//
//   mpi_train --model shapes.bin                                               # one process, without mpirun
//   mpirun --oversubscribe -n 4 mpi_train --model shapes.bin                   # four; 1, 2, 3, 4, 6, 12 are possible
//   mpirun -n 2 mpi_train --model shapes.bin --data 'my-{000..009}.tar'        # your shards: fields jpg and cls
//
// For root, mpirun needs --allow-run-as-root, or OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1.
//
// The file of the model is also the checkpoint: it contains the resume point. A later start with the same arguments
// resumes from it, with any of these numbers of ranks. Two facts make the result independent of that number: the order
// of samples does not depend on it (sources/shards.hpp), and floating-point sums depend on the order of additions only.
// The global batch is divided into `blocks` by position: position p belongs to block p mod blocks. Rank r of R gets the
// positions p = r mod R, which are complete blocks, and every rank adds the gradients of the blocks in their order.
// Errors: a rank prints its exception, then ends all ranks. Threads: only the main thread calls MPI.
#include "command_line.hpp"
#include "network.hpp"
#include "shape_shards.hpp"

#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include <mpi.h>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 32;     // of the input of the network, in pixels
constexpr std::size_t blocks = 12;   // of the global batch: a multiple of every number of ranks

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example prepare(const mr::record& r, mr::rng& rng) {
  return {mr::jpeg(r["jpg;jpeg"]).random_resized_crop(side, rng, {.scale_min = 0.5}).random_flip(rng),
          r["cls"].as<std::int32_t>()};
}

struct settings {
  std::string data{}, model{}, work{};
  std::size_t batch = 48, classes = 10;   // batch: of all ranks together
  std::uint64_t epochs = 4, seed = 1, save_every = 20;
  int threads = 1;
  mr::world world{};
};

/// Returns the rank of this process. MPI and its launcher must agree.
mr::world find_ranks(const command_line& args) {
  int rank = 0, world_size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const mr::world world = mr::world_from_launcher();
  if (world.rank != static_cast<std::size_t>(rank) || world.size != static_cast<std::size_t>(world_size))
    args.refuse("the environment says " + world.describe() + ", and MPI rank " + std::to_string(rank) + " of " +
                std::to_string(world_size) + ": start the program with the mpirun of the MPI that it was built with");
  if (blocks % world.size != 0)
    args.refuse("the " + std::to_string(blocks) + " blocks of a batch cannot be divided among " +
                std::to_string(world.size) + " ranks");
  return world;
}

/// The gradients of the blocks of a rank. A block is every `count`-th row.
class block_gradients {
 public:
  explicit block_gradients(const mr::world& r) : world_size_(r.size), count_(blocks / r.size) {}

  void compute(network& net, const mr::tensor_view<std::uint8_t, 4>& pixels,
               const mr::tensor_view<std::int32_t, 1>& labels) {
    const std::size_t weights = net.gradient().size(), rows = labels.size() / count_;
    const std::vector<float> zeros(weights, 0);
    own_.clear();
    for (std::size_t block = 0; block < count_; ++block) {
      block_pixels_.clear();
      block_labels_.clear();
      for (std::size_t row = block; row < labels.size(); row += count_) {
        const auto image = pixels[row].span();
        block_pixels_.insert(block_pixels_.end(), image.begin(), image.end());
        block_labels_.push_back(labels[row]);
      }
      net.set_gradient(zeros, 0);
      net.backward(mr::tensor_view<const std::uint8_t, 4>{.data = block_pixels_.data(), .shape = {rows, side, side, 3}},
                   mr::tensor_view<const std::int32_t, 1>{.data = block_labels_.data(), .shape = {rows}});
      own_.insert(own_.end(), net.gradient().begin(), net.gradient().end());
    }
  }

  /// Returns the sum over all ranks, with the same bits on each. Block b is number b div ranks of rank b mod ranks.
  std::vector<float> sum_in_order() {
    const std::size_t weights = own_.size() / count_;
    all_.resize(own_.size() * world_size_);
    MPI_Allgather(own_.data(), static_cast<int>(own_.size()), MPI_FLOAT, all_.data(), static_cast<int>(own_.size()),
                  MPI_FLOAT, MPI_COMM_WORLD);
    std::vector<float> sum(weights, 0);
    for (std::size_t block = 0; block < blocks; ++block) {
      const float* const gradient = &all_[(block % world_size_ * count_ + block / world_size_) * weights];
      for (std::size_t i = 0; i < weights; ++i) sum[i] += gradient[i];
    }
    return sum;
  }

 private:
  std::size_t world_size_, count_;
  std::vector<float> own_, all_;
  std::vector<std::uint8_t> block_pixels_;
  std::vector<std::int32_t> block_labels_;
};

settings read_settings(command_line& args) {
  settings s;
  s.model = args.text("--model", "");
  s.data = args.text("--data", "");
  s.work = args.text("--work", "millrace-shapes");
  s.batch = args.number("--batch", s.batch);
  s.classes = args.number("--classes", s.classes);
  s.epochs = args.number("--epochs", s.epochs);
  s.seed = args.number("--seed", s.seed);
  s.save_every = args.number("--save-every", s.save_every);
  s.threads = args.number("--threads", s.threads);
  s.world = find_ranks(args);
  if (!args.rest().empty()) args.refuse("expected options only");
  if (s.model.empty()) args.refuse("--model is missing, expected a file");
  if (s.batch == 0 || s.batch % blocks != 0 || s.save_every == 0)
    args.refuse("expected --batch a multiple of " + std::to_string(blocks) + ", and --save-every at least 1");
  if (s.data.empty()) {
    if (s.world.rank == 0) make_shape_shards({.folder = s.work});
    MPI_Barrier(MPI_COMM_WORLD);
    s.data = make_shape_shards({.folder = s.work}).train;   // they exist now
  }
  return s;
}

void train(command_line& args) {
  const settings s = read_settings(args);
  const bool first_rank = s.world.rank == 0;
  network net({.side = side, .classes = s.classes, .seed = s.seed});
  const std::string resume = std::filesystem::exists(s.model) ? net.load(s.model) : "";
  if (!resume.empty() && mr::parse_position(resume).epoch >= s.epochs) {
    if (first_rank) std::printf("%s has all %llu epochs\n", s.model.c_str(), static_cast<unsigned long long>(s.epochs));
    return;
  }
  // All ranks must resume at one step: a node may have an older copy of the checkpoint.
  std::uint32_t places[2] = {};
  places[0] = places[1] = resume.empty() ? 0 : mr::parse_position(resume).place();
  MPI_Allreduce(MPI_IN_PLACE, &places[0], 1, MPI_UINT32_T, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &places[1], 1, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
  if (places[0] != places[1])
    throw mr::setup_error("the ranks have different checkpoints in " + s.model, "Copy the same file to all of them");
  MPI_Barrier(MPI_COMM_WORLD);   // all have read the checkpoint before the first rank replaces it

  mr::session_options options{.epochs = s.epochs, .threads = s.threads, .world = s.world, .resume = resume};
  if (!first_rank) options.notice = mr::quiet;
  mr::session run{mr::shards(s.data, {.seed = s.seed, .fields = {"jpg;jpeg", "cls"}}) | mr::shuffle({.window = 2048}) |
                      mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = s.batch / s.world.size}),
                  options};
  block_gradients gradients(s.world);
  for (auto& b : run) {
    const double rate = 2e-3 * std::min(1.0, static_cast<double>(b.step() + 1) / 20);
    gradients.compute(net, b.get<&example::pixels>(), b.get<&example::label>());
    net.set_gradient(gradients.sum_in_order(), s.batch);
    net.update(rate);

    mr::position position = b.position();
    if ((b.step() + 1) % s.save_every != 0 && position.epoch < s.epochs) continue;
    // The digest of a rank covers the samples that this rank delivered.
    MPI_Allreduce(MPI_IN_PLACE, &position.digest, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (first_rank) net.save(s.model, mr::to_text(position));
  }
  if (first_rank) std::printf("model: %s, by %zu ranks\n", s.model.c_str(), s.world.size);
}

}   // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const int status = run_program({argc, argv,
                                  "usage: [mpirun -n RANKS] mpi_train --model FILE [--data SHARDS [--classes N]] "
                                  "[--work FOLDER] [--epochs N] [--batch N] [--seed N] [--save-every STEPS] "
                                  "[--threads N]"},
                                 train);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);   // the other ranks may be waiting for this one
  return MPI_Finalize();
}
