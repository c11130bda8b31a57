// Stands for the package vega (see build.mjs) with the parts that the plots need: no maps, trees, forces or
// words, which would be a tenth of the page.
import {transforms} from 'vega-dataflow';
import * as encode from 'vega-encode';
import * as data from 'vega-transforms';
import * as view from 'vega-view-transforms';

Object.assign(transforms, data, encode, view);

export {parse} from 'vega-parser';
export * from 'vega-util';
export {View} from 'vega-view';
