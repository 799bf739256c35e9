# The boundary of the library: the names that a user writes are in millrace::, everything else is in millrace::detail,
# which may change without notice.
#
#   python3 tests/contract/lint/boundary.py [ROOT]
#   python3 tests/contract/lint/boundary.py counts     # the public names of each header that millrace.hpp includes
#
# PUBLIC lists every public name by the header that declares it; `NAME_options` comes with NAME. It also reads the
# examples and the README: a program that a user copies names nothing of millrace::detail.
import functools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report
from signatures import public_names, signatures
from tree import Tree

# Users never include headers of these folders by name. The folders and their subfolders declare names in
# millrace::detail only. The README of the headers marks them with an asterisk.
PRIVATE = ("simd", "measure/meters", "sync", "order", "work", "read", "image/jpeg/baseline",
           "image/jpeg/progressive", "image/jpeg/libjpeg", "image/resize", "image/color", "image/warp", "image/render",
           "adapt/python")
# The transcoder of repack reads and writes coefficients with the library's wrapper of libjpeg: a second one would copy
# its limits, its error texts and its rules for longjmp.
TRANSCODER = "examples/transcode/"
# The words of a program that includes millrace.hpp.
UMBRELLA = {
    "base/error.hpp": "error data_error io_error setup_error printable",
    "base/random.hpp": "rng",
    "device/device.hpp": "device",
    "device/host.hpp": "host_device",
    "device/stream.hpp": "stream_view",
    "image/jpeg/jpeg_header.hpp": "picture_quality",
    "image/picture/picture.hpp": "picture jpeg",
    "io/file/read_file.hpp": "read_file",
    "io/tar/write/shard_writer.hpp": "shard_writer",
    "item/tensor/array.hpp": "array",
    "item/bytes.hpp": "bytes text",
    "item/position.hpp": "position",
    "item/world.hpp": "single_process world world_from_launcher",
    "item/record.hpp": "record",
    "item/scratch.hpp": "scratch",
    "item/tensor/ragged.hpp": "ragged",
    "item/tensor/tensor.hpp": "tensor image",
    "item/tensor/tensor_view.hpp": "tensor_view",
    "item/column/member.hpp": "columns label_b lambda",
    "run/session.hpp": "session feed",
    "run/session_options.hpp": "session_options endless",
    "sources/from.hpp": "from",
    "sources/shards.hpp": "index shards",
    "stages/batch.hpp": "batch prefetch",
    "stages/bucket.hpp": "bucket",
    "stages/expand.hpp": "expand filter",
    "stages/map.hpp": "map",
    "stages/shuffle.hpp": "shuffle",
    "stages/take.hpp": "take",
    "stages/to_device.hpp": "to_device",
    "train/json_lines.hpp": "json_lines",
    "train/log.hpp": "log",
    "train/metrics.hpp": "metrics",
    "train/status_line.hpp": "status_line",
    "train/tensorboard.hpp": "tensorboard",
}
MAX_UMBRELLA_NAMES = 52   # another one needs a better reason than usefulness
MAX_REACHED_NAMES = 232   # these names with their options, parameters, results and exceptions
# Their parameters, results and exceptions; and the names of the other umbrellas and of headers that users include.
OPT_IN = {
    "adapt/dlpack.hpp": "to_dlpack from_dlpack dlpack_tensor dlpack_array dlpack_pointer",
    "adapt/tensors/dlpack_structs.hpp": "dlpack_data_type dlpack_device dlpack_managed dlpack_versioned dlpack_view",
    "adapt/feed_rows.hpp": "feed_rows",
    "adapt/feeders/feed_rows_options.hpp": "feed_rows_options",
    "adapt/feeders/row_storage.hpp": "row_range row_run row_slots row_storage",
    "adapt/feeders/feeder_options.hpp": "feeder_options feeder_statistics feeder_storage feeders to_text",
    "adapt/json.hpp": "json_field json_tensor_options json_ragged_options",
    "adapt/tensors/shared_batch.hpp": "consumer_options",
    "adapt/opencv.hpp": "to_mat mat_pixels",
    "adapt/python.hpp": "python",
    "adapt/remote.hpp": "remote remote_storage",
    "adapt/remote/transfer/remote_statistics.hpp": "remote_statistics to_text",
    "adapt/remote/transfer/remote_options.hpp": "remote_hedging remote_options remote_retries",
    "adapt/remote/store/s3_options.hpp": "gs_options s3_credentials s3_options",
    "adapt/sentencepiece.hpp": "sentencepiece",
    "adapt/sndfile.hpp": "sndfile",
    "adapt/soxr.hpp": "soxr soxr_quality",
    "adapt/tbb.hpp": "tbb_executor",
    "adapt/webp.hpp": "webp webp_options webp_pictures",
    "adapt/torch.hpp": "to_torch",
    "base/crc32c.hpp": "crc32c",
    "base/error.hpp": "late_data_error stage_error conservation_error error_location located_exception",
    "base/half.hpp": "f16 bf16",
    "base/machine.hpp": "usable_cores local_rank",
    "base/notice.hpp": "notice notice_function notice_kind notice_severity quiet text_of",
    "deliver/batch.hpp": "batch_of",
    "deliver/batch_lease.hpp": "batch_lease",
    "deliver/mixed_batch.hpp": "mixed_batch",
    "device/best_device.hpp": "best_device",
    "device/cuda.hpp": "cuda_device cuda_device_count",
    "device/device.hpp": "device_backend device_event",   # for user-defined devices
    "device/host.hpp": "host_backend",                    # for user-defined devices with host memory
    "device/mix_rows.cuh": "mix_rows dense_labels",
    "device/mix_rows.hpp": "mix_rows dense_labels",
    "device/normalize.cuh": "normalize",
    "device/normalize.hpp": "normalize",
    "device/normalize_options.hpp": "normalize_options image_layout",
    "flow/source_weight.hpp": "exhausted source_weight",
    "image/plan/geometry.hpp": "geometry box box_options point point_options kept_boxes moved_points",
    "audio/audio.hpp": "audio audio_length random_gain_options audio_header audio_limits audio_resampler "
                       "resample_task audio_row ragged_audio",
    "audio/wav.hpp": "wav",
    "base/limits.hpp": "shard_limits line_limits picture_limits",
    "image/labels/label_map.hpp": "label_map labels label_options",
    "image/labels/u16_picture.hpp": "u16_picture normalized_u16_picture sample_normalization",
    "device/row_grid.hpp": "mixed_labels dense_labels_options",
    "image/plan/random_crop.hpp": "crop_box random_crop_options picture_size",
    "image/jpeg/jpeg_encoder.hpp": "encode_jpeg jpeg_encode_options chroma_sampling",
    "image/jpeg/jpeg_entries.hpp": "jpeg_entries",
    "image/jpeg/jpeg_header.hpp": "read_jpeg_header jpeg_header jpeg_metadata refusal_of_header jpeg_options "
                                  "picture_decoder",
    "image/picture/normalized_picture.hpp": "normalized_picture pixel_normalization",
    "image/augment/photometric_plan.hpp": "photometric_plan aug_mix_options augment_numbers augment_policy "
                                          "auto_augment_options color_factors color_jitter_options "
                                          "gaussian_blur_options hue_shifts interpolation mean_color "
                                          "pillow_blur_options rand_augment_options random_erasing_options "
                                          "trivial_augment_options warp_options",
    "image/png/png_encoder.hpp": "encode_png",
    "image/labels/mosaic_labels.hpp": "mosaic_labels",
    "image/picture/mosaic_picture.hpp": "mosaic_picture mosaic_options",
    "image/picture/padded_picture.hpp": "padded_picture padding_options",
    "image/picture/interleaved.hpp": "interleaved interleaved_row join_documents",
    "image/picture/patch_list.hpp": "patch_list resize_to_patches",
    "image/picture/picture_list.hpp": "picture_list",
    "image/picture/ragged_picture.hpp": "ragged_picture",
    "image/picture/rgba_picture.hpp": "rgba_picture",
    "image/plan/padding.hpp": "letterbox_options outer_box padding_fill padding_sides rgb_color",
    "image/plan/row_operation.hpp": "rgb_row row_operation",
    "image/values/jpeg_refusal.hpp": "jpeg_refusal refusal_name",
    "image/values/pixel_rules.hpp": "padding_mode resize_filter",
    "image/png/png.hpp": "png png_options",
    "image/pnm/pnm.hpp": "pnm pnm_options",
    "image/any_picture.hpp": "any_picture any_picture_options picture_reader",
    "image/plan/random_erase.hpp": "random_erase_options erase_fill",
    "io/cache/cache_contents.hpp": "cache_contents cache_contents_file contents_of_cache",
    "io/cache/cache_options.hpp": "cache_statistics cache_options",
    "io/cache/cached.hpp": "cached",
    "io/file/atomic_file.hpp": "atomic_file",
    "io/file/storage.hpp": "storage storage_interface stored_file file_identity",
    "io/file/byte_source.hpp": "byte_range byte_source file_source",
    "io/index/choice/key_list.hpp": "key_list",
    "io/tar/format/required_fields.hpp": "required_fields",
    "io/tar/read/shard_reader.hpp": "shard_counters shard_reader",
    "io/tar/write/shard_writer.hpp": "named_bytes",
    "item/bytes.hpp": "block_pool integer real",
    "sources/prepare/write_set_index.hpp": "set_index_totals write_set_index write_set_index_options",
    "item/line.hpp": "line",
    "item/on_damage.hpp": "damage damage_options",
    "item/packed.hpp": "packed",
    "item/position.hpp": "parse_position to_text replay_point digest_share data_counts",
    "item/record_builder.hpp": "record_builder",
    "item/column/row_mix.hpp": "row_mix",
    "item/tensor/array.hpp": "shaped_array",
    "item/tensor/tensor.hpp": "to_string",
    "item/tensor/tensor_view.hpp": "list_view padded_view sized_view memory_kind",
    "measure/values/distribution.hpp": "distribution",
    "measure/values/event_counts.hpp": "event_count event_counts",
    "measure/values/flow_statistics.hpp": "flow_statistics phase_statistics queue_statistics stage_statistics "
                                          "stage_kind",
    "measure/values/read_levels.hpp": "read_levels",
    "measure/values/run_stats.hpp": "run_stats shuffle_statistics source_count",
    "measure/values/timeline.hpp": "delivered_batch timeline timeline_counter timeline_span",
    "report/print/json_report.hpp": "chrome_trace json_report",
    "report/print/html_report.hpp": "html_report",
    "report/verdict/limits.hpp": "feeder_gain feeder_gain_of measure_receiving flow_limits stage_limit",
    "report/verdict/knobs.hpp": "gains_of knob knob_gain what_if_change",
    "report/run_report.hpp": "run_report report_of run_origin picture_statistics",
    "report/saved_predictions.hpp": "compare_with",
    "report/session_report.hpp": "report_of",
    "report/print/text_report.hpp": "text_report",
    "report/verdict/verdict.hpp": "judge verdict bound_by bound_cause",
    "report/simulate/what_if.hpp": "what_if prediction simulated_gains",
    "report/print/write_reports.hpp": "write_reports",
    "run/quarantine_list.hpp": "quarantine_list damaged_sample",
    "run/executor.hpp": "executor",
    "run/session_options.hpp": "row_provider stall_options",
    "sources/prepare/entry_points.hpp": "entry_points entry_points_of entry_points_options make_entry_points",
    "sources/missing_headers.hpp": "any_picture files folder_classes keys_from lines png pnm remote "
                                   "save_grid token_files wav webp write_reports",
    "sources/files.hpp": "files folder_classes",
    "sources/from.hpp": "source_options",
    "sources/join.hpp": "join join_options missing",
    "sources/keys_from.hpp": "keys_from",
    "sources/lines.hpp": "line_reader lines list_texts",
    "sources/mix.hpp": "mix weighted",
    "sources/list/shard_list.hpp": "list_shards",
    "sources/list/sidecar_counts.hpp": "sidecar_counts",
    "sources/token_files.hpp": "token_files",
    "stages/mix_rows.hpp": "mix_rows mixup cutmix",
    "stages/pack.hpp": "cost_options pack pack_best_fit",
    "train/device_sums.hpp": "device_sums device_rows device_values number_kind metric_totals",   # for your own sums
    "train/log.hpp": "log_counts instant sink time_source row quantity quantity_unit encoded_image",
    "train/metrics.cuh": "cuda_metric_sums",
    "train/metrics.hpp": "accuracy_options log_point mean_metric accuracy_metric add_options",
    "train/picture_grid.hpp": "save_grid encode_grid make_grid grid_options grid_boxes",
    "tune/autotuner.hpp": "tuning_rule",
    "tune/tuning.hpp": "tuning",
}
# Names of millrace::detail in public signatures, with the reason. A pattern matches `HEADER: detail::NAME`.
IN_SIGNATURES = {
    r"stages/\w+\.hpp: detail::(\w+_stage|\w*packing)": "a stage: users pass it to | and never name its type",
    r".*: detail::(basic_)?(atomic_file|file_source|shard_writer)": "a template for tests; the alias is the name",
    r"(base/notice|item/column/member)\.hpp: detail::(quiet_notices|label_b_column|lambda_column)":
        "the type of a constant: users name the constant",
    r"item/(bytes|record)\.hpp: detail::(block_ref|record_head)": "the memory that a reader of the library hands over",
    r"io/index/choice/key_list\.hpp: detail::key_table": "the table that keys_from() hands over",
    r"audio/audio\.hpp: detail::(audio_file|audio_range)": "how formats reach a plan: no program has such a value",
    r"image/(picture/picture|plan/geometry)\.hpp: detail::(picture_file|picture_group|resize_plan)":
        "how formats, batches and label maps reach a plan: no program has such a value",
}


DETAIL = re.compile(r"\bdetail::\w+")


def is_private(header):
    return any(header.startswith(f"{folder}/") for folder in PRIVATE)


class Boundary:
    """The public names of a tree, compared with a list."""

    def __init__(self, root, umbrella=None, opt_in=None, in_signatures=None):
        self.tree = Tree(root)
        self.in_signatures = in_signatures or IN_SIGNATURES
        self.umbrella, self.opt_in = umbrella or UMBRELLA, opt_in or OPT_IN

    @functools.cached_property
    def public_headers(self):
        """{path: text} of the headers that may declare public names, without their definitions."""
        return {header: bare for header, bare in self.tree.bare_headers.items()
                if not is_private(header) and not header.endswith((".inl", ".tpl.hpp"))}

    def listed(self, header):
        return {name for table in (self.umbrella, self.opt_in) for name in table.get(header, "").split()}

    def unlisted(self):
        """A name in millrace:: that the list has not: it belongs into millrace::detail."""
        for header, bare in self.tree.bare_headers.items():
            listed = self.listed(re.sub(r"impl/(\w+)\.inl$|\.tpl\.hpp$", r"\1.hpp", header))
            for name in sorted(public_names(bare)):
                word = re.sub(r"_options$", "", name)
                if name not in listed and word not in listed:
                    yield f"include/millrace/{header}: {name} is public, and not listed; put it into millrace::detail"

    def missing(self):
        """A name of the list that its header does not declare."""
        for table in (self.umbrella, self.opt_in):
            for header, names in table.items():
                declared = public_names(self.tree.bare_headers.get(header, ""))
                for name in names.split():
                    if name not in declared:
                        yield f"include/millrace/{header}: {name} is listed, and not declared in millrace::"

    def private_folders(self):
        """A listed header of a private folder; a folder that the README of the headers marks as private and that is
        public, or the reverse."""
        readme = "include/millrace/README.md"
        rows = re.findall(r"^\| [\w-]+ \| `([\w/]+)`( \*)? \|", self.tree.sources.get(readme, ""), re.MULTILINE)
        for folder, mark in rows:
            if bool(mark) != is_private(f"{folder}/"):
                yield f"{readme}: {folder} is {'public' if mark else 'private'}"
        for table in (self.umbrella, self.opt_in):
            for header in table:
                if is_private(header):
                    yield f"include/millrace/{header}: its folder is private"

    @functools.cached_property
    def reached(self):
        """The headers that millrace.hpp includes, directly or not."""
        reached, todo = set(), ["millrace.hpp"]
        includes = {}
        for path, _, _, name in self.tree.includes:
            includes.setdefault(path, []).append(name.removeprefix("millrace/"))
        while todo:
            header = todo.pop()
            if header not in reached:
                reached.add(header)
                todo += includes.get(header, [])
        return reached

    def unreached(self):
        """A header of UMBRELLA that millrace.hpp does not include."""
        return [f"include/millrace/{header}: millrace.hpp does not include it"
                for header in self.umbrella if header not in self.reached]

    def counts(self):
        """The names that a program can reach by each header of millrace.hpp: those that it declares, listed or not, and
        the names of millrace::detail in its public signatures."""
        counts = {}
        for header in sorted(self.reached & set(self.public_headers)):
            bare = self.public_headers[header]
            if names := public_names(bare).union(*(re.findall(DETAIL, text) for _, text in signatures(bare))):
                counts[header] = names
        return counts

    def examples(self):
        """A program that users copy and that names something of millrace::detail, or includes a private header."""
        for path, text in self.tree.sources.items():
            if path == "README.md" or path.startswith("examples/") and not path.startswith(TRANSCODER):
                for number, line in enumerate(text.splitlines(), 1):
                    if re.search(r"\b(mr|millrace)::detail\b", line):
                        yield f"{path}:{number}: an example names millrace::detail"
                    included = re.match(r"\s*#\s*include <millrace/(.*)>", line)
                    if included and is_private(included[1]):
                        yield f"{path}:{number}: an example includes a private header"

    def signatures(self):
        """A public signature, alias or member that names a type of millrace::detail; an exception without a use."""
        unused = dict(self.in_signatures)
        for header, bare in self.public_headers.items():
            for line, text in signatures(bare):
                for name in sorted(set(re.findall(DETAIL, text))):
                    allowed = [one for one in self.in_signatures if re.fullmatch(one, f"{header}: {name}")]
                    for one in allowed:
                        unused.pop(one, None)
                    if not allowed:
                        yield f"include/millrace/{header}:{line}: {name} is in a public signature: {text}"
        yield from (f"no public signature needs the exception {one}" for one in unused)

    def too_many(self):
        """More names in the umbrella than a user can remember."""
        names = sum(len(names.split()) for names in self.umbrella.values())
        reached = len(set().union(*self.counts().values()))
        return ([f"{names} names at the umbrella; {MAX_UMBRELLA_NAMES} are allowed"] * (names > MAX_UMBRELLA_NAMES) +
                [f"millrace.hpp leads to {reached} names; {MAX_REACHED_NAMES} are allowed"] *
                (reached > MAX_REACHED_NAMES))


RULES = ("unlisted", "missing", "private_folders", "unreached", "examples", "signatures", "too_many")


def main(root):
    if root == "counts":
        for header, names in Boundary(ROOT).counts().items():
            print(f"{len(names):4}  {header}: {' '.join(sorted(names))}")
        return 0
    report, boundary = Report(), Boundary(root)
    for rule in RULES:
        report.add(f"boundary {rule}", "\n".join(getattr(boundary, rule)()))
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ROOT))
