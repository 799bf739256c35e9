#include <millrace/item/world.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace mr = millrace;

namespace {

using environment = std::map<std::string, std::string>;

auto lookup_in(const environment& variables) {
  return [&variables](const char* name) -> const char* {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  };
}

mr::world read(const environment& variables) {
  return mr::detail::launcher_reader(lookup_in(variables)).read();
}

std::string message_of(const environment& variables) {
  try {
    const mr::world r = read(variables);
    return "no error, " + r.describe();
  } catch (const mr::setup_error& e) {
    return e.message();
  }
}

/// Returns the error of a session without a world; "one process" if there is none.
std::string error_by_default(const environment& variables) {
  try {
    const bool is_single = mr::detail::launcher_reader(lookup_in(variables)).read_single() ==
                           mr::single_process;
    return is_single ? "one process" : "another world";
  } catch (const mr::setup_error& e) {
    return e.message() + ". " + e.hint();
  }
}

environment operator+(environment a, const environment& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const environment torchrun{
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "none"}};
const environment open_mpi{
    {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
const environment mvapich{
    {"MV2_COMM_WORLD_RANK", "2"}, {"MV2_COMM_WORLD_SIZE", "6"}, {"MV2_COMM_WORLD_LOCAL_RANK", "2"}};
const environment mpich{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}};
const environment slurm_job{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_LOCALID", "0"}};
const environment slurm_step{
    {"SLURM_PROCID", "9"}, {"SLURM_NTASKS", "16"}, {"SLURM_LOCALID", "3"}, {"SLURM_STEP_ID", "0"}};

const environment flux{{"FLUX_TASK_RANK", "5"}, {"FLUX_JOB_SIZE", "8"}, {"FLUX_TASK_LOCAL_ID", "1"},
                       {"FLUX_JOB_NNODES", "2"}};
const environment pals{{"PALS_RANKID", "13"}, {"PALS_LOCAL_RANKID", "1"}, {"PALS_LOCAL_SIZE", "12"},
                       {"PMI_RANK", "13"}, {"PMI_SIZE", "24"}};
const environment jsrun{{"JSM_NAMESPACE_RANK", "7"}, {"JSM_NAMESPACE_SIZE", "12"}, {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                        {"JSM_NAMESPACE_LOCAL_SIZE", "6"}};

}  // namespace

TEST_CASE("without a launcher there is one process") {
  CHECK(read({}) == mr::world{});
  CHECK(read({{"RANK", ""}, {"WORLD_SIZE", ""}}) == mr::world{});
  CHECK(read({}).describe() == "rank 0 of 1");
}

TEST_CASE("each launcher's variables are read") {
  CHECK(read(torchrun) == mr::world{.rank = 5, .size = 8, .local_rank = 1});
  CHECK(read(open_mpi) == mr::world{.rank = 3, .size = 4, .local_rank = 1});
  CHECK(read(mvapich) == mr::world{.rank = 2, .size = 6, .local_rank = 2});
  CHECK(read(mpich) == mr::world{.rank = 1, .size = 2, .local_rank = 1});
  CHECK(read(slurm_step) == mr::world{.rank = 9, .size = 16, .local_rank = 3});
  CHECK(read({{"RANK", "1"}, {"WORLD_SIZE", "2"}}) == mr::world{.rank = 1, .size = 2});
  CHECK(read(open_mpi).describe() == "rank 3 of 4 (Open MPI, local rank 1)");
}

TEST_CASE("Flux, HPE PALS, jsrun and Horovod") {
  CHECK(read(flux) == mr::world{.rank = 5, .size = 8, .local_rank = 1, .local_size = 4});
  CHECK(read(flux).describe() == "rank 5 of 8 (Flux, local rank 1 of 4)");
  CHECK(read(flux + environment{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}) == read(flux));
  CHECK(read(flux + slurm_step) == read(flux));        // a Flux instance in a Slurm job
  CHECK(read(flux + open_mpi) == read(open_mpi));      // mpirun in a Flux job
  CHECK(read(pals) == mr::world{.rank = 13, .size = 24, .local_rank = 1, .local_size = 12});
  CHECK(read(pals).describe() == "rank 13 of 24 (HPE PALS, local rank 1 of 12)");
  CHECK(read({{"PALS_RANKID", "1"}, {"PALS_SIZE", "4"}}) == mr::world{.rank = 1, .size = 4});
  CHECK(read({{"PALS_RANKID", "1"}, {"PMI_SIZE", "4"}, {"PMI_LOCAL_SIZE", "2"}}).local_size == 2);
  CHECK(read(jsrun) == mr::world{.rank = 7, .size = 12, .local_rank = 1, .local_size = 6});
  CHECK(read({{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}, {"HOROVOD_LOCAL_SIZE", "2"}}).local_size == 2);
  CHECK(read(torchrun + flux) == read(torchrun));
  CHECK(read({{"PALS_RANKID", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "4"}}).size == 4);
  for (const char* rank : {"PALS_RANKID", "PMIX_RANK", "ALPS_APP_PE"})   // never silently rank 0 of 1
    CHECK(message_of({{rank, "1"}}) ==
          std::string(rank) + "=1 means that this is one of several processes, but the number of processes is not set");
  CHECK(read({{"PMIX_RANK", "0"}}) == mr::world{});   // Open MPI without mpirun
  CHECK(message_of({{"FLUX_TASK_RANK", "1"}}) == "FLUX_TASK_RANK (Flux) is set, but FLUX_JOB_SIZE is not");
  CHECK(message_of({{"JSM_NAMESPACE_SIZE", "2"}}) ==
        "JSM_NAMESPACE_SIZE (jsrun) is set, but JSM_NAMESPACE_RANK is not");
}

TEST_CASE("the processes of this machine are counted by the launcher's variables") {
  CHECK(read(torchrun + environment{{"LOCAL_WORLD_SIZE", "4"}}).local_size == 4);
  CHECK(read(open_mpi + environment{{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}).describe() ==
        "rank 3 of 4 (Open MPI, local rank 1 of 2)");
  CHECK(read(mvapich + environment{{"MV2_COMM_WORLD_LOCAL_SIZE", "3"}}).local_size == 3);
  CHECK(read(mpich + environment{{"MPI_LOCALNRANKS", "2"}}).local_size == 2);
  const auto slurm = [](const char* name, const char* value, const char* node = "0") {
    return read(slurm_step + environment{{name, value}, {"SLURM_NODEID", node}}).local_size;
  };
  CHECK(slurm("SLURM_STEP_TASKS_PER_NODE", "8(x2)", "1") == 8);
  CHECK(slurm("SLURM_STEP_TASKS_PER_NODE", "4(x3),2,2", "2") == 4);
  CHECK(slurm("SLURM_NTASKS_PER_NODE", "8", "3") == 8);
  CHECK(slurm("SLURM_TASKS_PER_NODE", "8,8", "1") == 8);
  CHECK(read(slurm_job + environment{{"SLURM_NTASKS_PER_NODE", "8"}}).local_size == 0);   // not a step
  // More processes than exist, or fewer than the local rank needs: not those of this run.
  CHECK(read(torchrun + environment{{"LOCAL_WORLD_SIZE", "9"}}).local_size == 0);
  CHECK(read(torchrun + environment{{"LOCAL_WORLD_SIZE", "1"}}).local_size == 0);
  CHECK(message_of(torchrun + environment{{"LOCAL_WORLD_SIZE", "two"}}) ==
        "LOCAL_WORLD_SIZE=two is not a rank or process count");
}

TEST_CASE("Slurm's lists of tasks") {
  const auto tasks = mr::detail::launcher_tasks_of_node;
  for (std::size_t node = 0; node < 3; ++node) CHECK(tasks("2(x3),1", node) == 2);
  CHECK(tasks("2(x3),1", 3) == 1);
  CHECK(tasks("2(x3),1", 4) == 0);
  CHECK(tasks("1,2(x3)", 0) == 1);
  CHECK(tasks("1,2(x3)", 3) == 2);
  CHECK(tasks("6", 5) == 6);
  for (const char* wrong : {"", "x", "2(x", "2(3)", "2(x3", ",", "2x3", "-1"})
    CHECK_MESSAGE(tasks(wrong, 0) == 0, wrong);
}

TEST_CASE("a Slurm job is not a step of srun") {
  CHECK(read(slurm_job) == mr::world{});
  for (const char* not_srun : {"4294967290", "4294967291", "4294967292"}) {   // interactive, batch, extern
    environment shell = slurm_step;
    shell["SLURM_STEP_ID"] = not_srun;
    CHECK(read(shell) == mr::world{});
  }
  CHECK(read(slurm_job + environment{{"SLURM_STEPID", "12"}}).size == 16);
  environment partial_step = slurm_step;
  partial_step["SLURM_STEP_NUM_TASKS"] = "10";
  CHECK(read(partial_step).size == 10);
}

TEST_CASE("the innermost launcher takes precedence") {
  CHECK(read(torchrun + slurm_step) == read(torchrun));   // one agent for each task of srun
  CHECK(read(torchrun + open_mpi) == read(torchrun));
  CHECK(read(open_mpi + slurm_step) == read(open_mpi));   // mpirun inside a job
  CHECK(read(mpich + slurm_job) == read(mpich));
  const environment pmi_of_srun{{"PMI_RANK", "9"}, {"PMI_SIZE", "16"}};
  CHECK(read(pmi_of_srun + slurm_step) == read(slurm_step));
  CHECK(read(pmi_of_srun + slurm_step + open_mpi) == read(open_mpi));   // mpirun in a shell that srun started
  CHECK(read(open_mpi + environment{{"RANK", "3"}, {"WORLD_SIZE", "4"}}) == read(open_mpi));
}

TEST_CASE("contradicting variables are refused by name") {
  CHECK(message_of(open_mpi + environment{{"RANK", "0"}, {"WORLD_SIZE", "1"}}) ==
        "the environment contains rank 0 of 1 (torchrun, local rank 0) and rank 3 of 4 (Open MPI, local rank 1) at "
        "once");
  CHECK(message_of(slurm_step + environment{{"RANK", "0"}, {"WORLD_SIZE", "1"}}).find("(Slurm, ") != std::string::npos);
  CHECK(message_of(open_mpi + mpich).find("(MPICH, ") != std::string::npos);
  CHECK(message_of({{"RANK", "1"}}) == "RANK (torchrun) is set, but WORLD_SIZE is not");
  CHECK(message_of({{"OMPI_COMM_WORLD_SIZE", "1"}}) ==
        "OMPI_COMM_WORLD_SIZE (Open MPI) is set, but OMPI_COMM_WORLD_RANK is not");
  CHECK(message_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}) == "PMI_RANK=2 is not less than PMI_SIZE=2");
  CHECK(message_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}) == "RANK=0 is not less than WORLD_SIZE=0");
  CHECK(message_of({{"RANK", "one\n"}, {"WORLD_SIZE", "2"}}) == "RANK=one\\x0a is not a rank or process count");
  CHECK(message_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}) ==
        "LOCAL_RANK=2 is not less than WORLD_SIZE=2");
}

const std::string choices =
    ". Set .world = mr::world_from_launcher() to share the samples among the ranks, or .world = mr::single_process to "
    "deliver all samples in this process, for example in a validation on one rank";

TEST_CASE("a session without a world is one process, or an error that names both choices") {
  for (const mr::detail::launcher& l : mr::detail::launchers) {
    CAPTURE(l.name);
    const auto of = [&](const char* rank, const char* size) {
      return error_by_default({{l.rank, rank}, {l.world_size, size}, {l.local_rank, rank}, {"SLURM_STEP_ID", "0"}});
    };
    const std::string name = l.name;
    CHECK(of("1", "2") == "session_options::world is not set: got rank 1 of 2 (" + name +
                              ", local rank 1) from the environment, expected one process" + choices);
    CHECK(of("0", "2") == "session_options::world is not set: got rank 0 of 2 (" + name +
                              ", local rank 0) from the environment, expected one process" + choices);
    CHECK(of("0", "1") == "one process");
  }
  CHECK(error_by_default({}) == "one process");
  CHECK(error_by_default(slurm_job) == "one process");   // a batch script
  CHECK(error_by_default({{"PMIX_RANK", "0"}}) == "one process");
  CHECK(error_by_default(torchrun + slurm_step).starts_with(
      "session_options::world is not set: got rank 5 of 8 (torchrun, local rank 1) from the environment"));
}

TEST_CASE("a session without a world is refused if the environment does not determine the rank") {
  const std::string start =
      "session_options::world is not set, and the environment does not contain a valid rank: ";
  for (const environment& wrong :
       {environment{{"RANK", "1"}}, environment{{"PMI_RANK", "0"}, {"PMI_SIZE", "one"}},
        environment{{"RANK", "1"}, {"WORLD_SIZE", "1"}}, environment{{"PALS_RANKID", "1"}},
        environment{{"PMIX_RANK", "1"}}, open_mpi + environment{{"RANK", "0"}, {"WORLD_SIZE", "1"}}})
    CHECK(error_by_default(wrong) == start + message_of(wrong) + choices);
}

TEST_CASE("the call reads this process's own environment") {
  for (const mr::detail::launcher& l : mr::detail::launchers) {
    unsetenv(l.rank);
    unsetenv(l.world_size);
  }
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  CHECK(mr::world_from_launcher() == mr::world{.rank = 1, .size = 3});
  CHECK_THROWS_WITH_AS(mr::detail::world_by_default(), doctest::Contains("got rank 1 of 3 (Open MPI, local rank 0)"),
                       mr::setup_error);
  CHECK(mr::detail::processes_of_machine({}) == 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
  CHECK(mr::detail::processes_of_machine({}) == 3);
  CHECK(mr::detail::processes_of_machine({.rank = 0, .size = 2, .local_size = 2}) == 2);
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);   // contradicts itself
  CHECK(mr::detail::processes_of_machine({}) == 1);
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  CHECK(mr::world_from_launcher() == mr::world{});
  CHECK(mr::detail::world_by_default() == mr::single_process);
}
