#pragma once
#include <cmath>
#include <cstddef>
#include <vector>

namespace gala_reference {

/// GALA with Adam, written to be read: plain loops over plain vectors, one tensor after the other, no
/// tricks. It shares no code with the library. Layers are groups of tensors.
struct Gala {
  // The paper's settings and the readings of the class comment of GalaSelector.
  double threshold = 0.75;
  int window = 20;
  double opening_scale = 0.01;
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

  std::vector<std::vector<std::size_t>> layers;  // tensors of each layer
  std::vector<std::vector<float>> parameters;    // one vector a tensor
  std::vector<std::vector<float>> m = {}, v = {}, displacement = {};
  int step = 0;

  struct Choice {
    bool opening = false;
    int layer = -1;  // -1: none
    std::vector<double> cosines = {};
    double gap = 0;  // between the two largest cosines
  };

  Choice adapt(const std::vector<std::vector<float>>& gradients) {
    if (m.empty()) m = v = displacement = zeros();
    ++step;
    const bool opening = (step - 1) % window == 0;
    if (opening) displacement = zeros();  // the anchor is here and now

    std::vector<std::vector<float>> update = zeros();
    for (std::size_t t = 0; t < parameters.size(); ++t) {
      for (std::size_t i = 0; i < parameters[t].size(); ++i) {
        const float g = gradients[t][i];
        m[t][i] = static_cast<float>(beta1) * m[t][i] + static_cast<float>(1 - beta1) * g;
        v[t][i] = static_cast<float>(beta2) * v[t][i] + static_cast<float>(1 - beta2) * g * g;
        const double m_hat = m[t][i] / (1 - std::pow(beta1, step));
        const double v_hat = v[t][i] / (1 - std::pow(beta2, step));
        update[t][i] = static_cast<float>(-rate * m_hat / (std::sqrt(v_hat) + epsilon));
      }
    }

    Choice choice;
    choice.opening = opening;
    for (const auto& tensors : layers) choice.cosines.push_back(cosine(update, tensors));
    double first = -2, second = -2;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      if (choice.cosines[l] > first) {
        second = first;
        first = choice.cosines[l];
        choice.layer = static_cast<int>(l);
      } else if (choice.cosines[l] > second) {
        second = choice.cosines[l];
      }
    }
    choice.gap = first - second;
    if (first <= threshold) choice.layer = -1;

    for (std::size_t l = 0; l < layers.size(); ++l) {
      const bool chosen = static_cast<int>(l) == choice.layer;
      if (opening || chosen) move(update, layers[l], opening ? opening_scale : 1.0);
    }
    return choice;
  }

 private:
  std::vector<std::vector<float>> zeros() const {
    std::vector<std::vector<float>> result;
    for (const auto& tensor : parameters) result.emplace_back(tensor.size(), 0.0F);
    return result;
  }

  /// u·(u + TD) / (|u| |u + TD|), as Eq. 5 stands.
  double cosine(const std::vector<std::vector<float>>& update,
                const std::vector<std::size_t>& tensors) const {
    double dot = 0, u_square = 0, sum_square = 0;
    for (const std::size_t t : tensors) {
      for (std::size_t i = 0; i < update[t].size(); ++i) {
        const double u = update[t][i], sum = u + static_cast<double>(displacement[t][i]);
        dot += u * sum;
        u_square += u * u;
        sum_square += sum * sum;
      }
    }
    return u_square > 0 && sum_square > 0 ? dot / (std::sqrt(u_square) * std::sqrt(sum_square)) : 0;
  }

  void move(const std::vector<std::vector<float>>& update, const std::vector<std::size_t>& tensors,
            double scale) {
    for (const std::size_t t : tensors) {
      for (std::size_t i = 0; i < update[t].size(); ++i) {
        const auto delta = static_cast<float>(scale * update[t][i]);
        parameters[t][i] += delta;
        displacement[t][i] += delta;
      }
    }
  }
};

}  // namespace gala_reference
