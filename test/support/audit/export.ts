import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { verifyExport } from '../../../db/audit/export/offline.ts'
import { COMPILED } from '../cache.ts'
import type { Service } from '../service.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The chapter that says how to prove the audit. */
const CHAPTER = readFileSync(join(ROOT, 'api/docs/guide/audit-proof.md'), 'utf8')

/** The blocks of the chapter with this info string, as they are printed. */
export function readBlocks(info: string): string[] {
  return [...CHAPTER.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)]
    .filter(([, kind]) => kind === info)
    .map(([, , text]) => text!)
}

/** Verifies the text of an export, which comes in pieces of odd sizes. */
export async function verifyText(text: string | Buffer, options: Parameters<typeof verifyExport>[1] = {}) {
  const bytes = Buffer.from(text)
  async function* cut() {
    for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 3 + 7) % 70_001)
      yield new Uint8Array(bytes.subarray(at, at + size))
  }
  return verifyExport(cut(), options)
}

/** The verdicts of a verification, in the order of the file. */
export async function judgeText(text: string | Buffer, options: Parameters<typeof verifyExport>[1] = {}) {
  return (await verifyText(text, options)).findings.map(({ verdict }) => verdict)
}

/** Exports a chain over HTTP. */
export async function exportChain(service: Service, teamId: string, query = '', as = service.admin) {
  const response = await service.request(`/api/audit/team/${teamId}/export${query}`, { as })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`the export responded with ${response.status}: ${text}`)
  return text
}

/** Runs a program in a folder; `env` is all of its environment but PATH. */
export function runProgram(
  command: string,
  args: string[],
  { cwd = ROOT, env = {}, input = '' }: { cwd?: string; env?: Record<string, string>; input?: string } = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...COMPILED, ...env },
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (part) => (out += part))
  child.stderr.on('data', (part) => (err += part))
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, out, err })))
}

/** Runs `perdure` with `env` as all of its settings. */
export const perdure = (args: string[], env: Record<string, string> = {}, input = '') =>
  runProgram(process.execPath, [join(ROOT, 'worker/cli.ts'), ...args], { env, input })
