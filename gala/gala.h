#pragma once
// The library for those who embed it, in the order in which a batch passes through it. Training
// (gala/train), experiments (gala/protocol) and pages (gala/report) have headers of their own.

// Not in the order of their names:
// clang-format off
#include "gala/base/error.h"         // what is thrown: Error, ConfigError, FormatError
#include "gala/base/spec.h"          // name:key=value, as everything is named
#include "gala/data/dataset.h"       // pictures with or without labels
#include "gala/data/stream.h"        // in which order they come
#include "gala/data/loader.h"        // batches, made ahead by threads
#include "gala/model/model.h"        // networks: images in, features and logits out
#include "gala/model/weights.h"      // safetensors and PyTorch checkpoints
#include "gala/model/layout.h"       // how maps lie in memory, by trial where asked
#include "gala/model/precision.h"    // float32, tf32, bf16
#include "gala/model/partition.h"    // what counts as a layer
#include "gala/view/view.h"          // a batch seen otherwise
#include "gala/loss/loss.h"          // unsupervised losses
#include "gala/loss/sample_rule.h"   // which images count in them
#include "gala/tensor/arena.h"       // all adapted parameters in one flat buffer
#include "gala/optim/optimizer.h"    // measure every layer's update, apply the chosen ones
#include "gala/select/selector.h"    // which layers move
#include "gala/step/stepper.h"       // a step after backward, on plain memory
#include "gala/method/recipe.h"      // methods by their names
#include "gala/adapt/adapter.h"      // answers a batch and adapts to it
#include "gala/adapt/answer_loop.h"  // the loop over the batches of a stream
#include "gala/adapt/state_file.h"   // stop and go on
// clang-format on
