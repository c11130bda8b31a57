// Makes the C++ source that holds the page's script, style and the licences of what is in them.
//   node build.mjs OUT.cpp      (beside node_modules, see CMakeLists.txt)
import {readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));

const result = await build({
  entryPoints: [join(here, 'src/main.js')], bundle: true, minify: true, format: 'iife',
  target: 'es2022', write: false, metafile: true, legalComments: 'none', logLevel: 'error',
  // Vega-Lite asks for the whole of Vega, where the page needs a part.
  alias: {vega: join(here, 'src/vega.js')},
});
const style = await build({
  entryPoints: [join(here, 'style.css')], minify: true, write: false, logLevel: 'error',
});

// Packages by the text of their licence, which their terms want passed on.
function licences(inputs) {
  const packages = new Set(Object.keys(inputs).filter((name) => name.includes('node_modules/'))
    .map((name) => /^.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(name)[0]));
  const texts = new Map();
  for (const folder of [...packages].sort()) {
    const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    const text = file ? readFileSync(join(folder, file), 'utf8').trim() : about.license;
    texts.set(text, [...(texts.get(text) ?? []), `${about.name} ${about.version}`]);
  }
  return [...texts].map(([text, names]) => `${names.join(', ')}\n\n${text}\n`).join('\n\n');
}

// Pieces that every compiler takes.
function literal(name, text) {
  if (text.includes(')gala"')) throw new Error('the delimiter is in the text');
  const bytes = Buffer.from(text, 'utf8');
  const pieces = [];
  for (let at = 0; at < bytes.length;) {
    let end = Math.min(at + 8000, bytes.length);
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) --end;
    pieces.push(`  text += R"gala(${bytes.subarray(at, end).toString('utf8')})gala";`);
    at = end;
  }
  return `std::string ${name}() {\n  std::string text;\n${pieces.join('\n')}\n  return text;\n}\n`;
}

const script = result.outputFiles[0].text;
if (/<\/script|<!--/i.test(script)) throw new Error('the script would end its own element');
writeFileSync(process.argv[2], `#include "gala/report/page_assets.h"

namespace gala {

${literal('page_script', script)}
${literal('page_style', style.outputFiles[0].text)}
${literal('page_licences', licences(result.metafile.inputs))}
std::string page_assets_problem() {
  return "";
}

}  // namespace gala
`);
