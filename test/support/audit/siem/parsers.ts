import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFree } from '../../../../worker/local/ports.ts'
import { LOGNORM, RSYSLOG } from '../../programs.ts'

/** A message of syslog as rsyslog understands it. */
export type ParsedSyslog = {
  pri: string
  time: string
  host: string
  app: string
  procid: string
  msgid: string
  msg: string
  'rfc5424-sd': Record<string, Record<string, string>>
}

const config = (dir: string, port: number) => `
global(workDirectory="${dir}" parser.escapeControlCharactersOnReceive="off" maxMessageSize="256k")
module(load="imtcp")
module(load="mmpstrucdata")
template(name="all" type="list") { property(name="$!all-json") constant(value="\\n") }
template(name="when" type="string" string="%timereported:::date-rfc3339%")
ruleset(name="in") {
  action(type="mmpstrucdata" sd_name.lowercase="off")
  set $!pri = $pri;
  set $!time = exec_template("when");
  set $!host = $hostname;
  set $!app = $app-name;
  set $!procid = $procid;
  set $!msgid = $msgid;
  set $!msg = $msg;
  action(type="omfile" file="${dir}/out" template="all" flushOnTXEnd="on")
}
input(type="imtcp" port="${port}" address="127.0.0.1" ruleset="in")
`

/** Starts rsyslog on loopback, which takes messages with their length before them, and in lines. */
export async function startRsyslog() {
  const dir = mkdtempSync(join(tmpdir(), 'perdure-rsyslog-'))
  const port = await findFree()
  writeFileSync(join(dir, 'conf'), config(dir, port))
  const args = ['-n', '-f', join(dir, 'conf'), '-i', join(dir, 'pid')]
  const child = spawn(RSYSLOG, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (said += part))
  const ended = once(child, 'close')
  await untilOpen(port, child, () => said)
  const read = () => (existsSync(join(dir, 'out')) ? readFileSync(join(dir, 'out'), 'utf8') : '')
  return {
    port,
    /** Sends bytes over one connection. */
    async send(bytes: string | Buffer): Promise<void> {
      const socket = connect(port, '127.0.0.1')
      socket.end(bytes)
      socket.resume()
      await once(socket, 'close')
    },
    /** What has been received, once there are at least `count` messages. */
    async messages(count: number): Promise<ParsedSyslog[]> {
      for (const giveUp = Date.now() + 60_000; ; await sleep(50)) {
        const lines = read().split('\n').slice(0, -1)
        if (lines.length >= count) return lines.map((line) => JSON.parse(line))
        if (Date.now() > giveUp) throw new Error(`rsyslog has received ${lines.length} of ${count}: ${said}`)
      }
    },
    async stop(): Promise<void> {
      child.kill('SIGTERM')
      await ended
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** An event of CEF as liblognorm understands it. */
export type ParsedCef = {
  DeviceVendor: string
  DeviceProduct: string
  DeviceVersion: string
  SignatureID: string
  Name: string
  Severity: string
  Extensions: Record<string, string>
}

/** Parses lines of CEF with liblognorm; one that it cannot parse is undefined. */
export function parseCef(lines: string[]): (ParsedCef | undefined)[] {
  const dir = mkdtempSync(join(tmpdir(), 'perdure-lognorm-'))
  try {
    writeFileSync(join(dir, 'rules'), 'version=2\nrule=:%f:cef%\n')
    // This version of it swallows the first letter of the extensions, unless there is a space before it.
    const input = lines.map((line) => line.replace(/^((?:[^\\|]|\\.)*\|){7}/s, '$& ')).join('\n')
    const options = {
      input: `${input}\n`,
      maxBuffer: 512 * 1024 * 1024,
      stdio: ['pipe', 'pipe', 'ignore'] as never,
    }
    const out = execFileSync(LOGNORM, ['-r', join(dir, 'rules'), '-e', 'json'], options)
    const parsed = out.toString().split('\n').slice(0, -1)
    return parsed.map((line) => (JSON.parse(line) as { f?: ParsedCef }).f)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

async function untilOpen(port: number, child: ChildProcess, said: () => string): Promise<void> {
  for (const giveUp = Date.now() + 20_000; ; await sleep(25)) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
    if (child.exitCode !== null || Date.now() > giveUp) throw new Error(`rsyslog did not start: ${said()}`)
  }
}
