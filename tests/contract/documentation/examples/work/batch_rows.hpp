// block 1 is part of a class: work/batch_segment.hpp
