import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TLSConfig } from '@temporalio/client'

/** How to connect to Temporal: `false` without TLS, `true` with the system's authorities and no certificate. */
export type TemporalTls = boolean | TLSConfig

const CA = 'TEMPORAL_TLS_SERVER_CA_CERT_PATH'
const CERTIFICATE = 'TEMPORAL_TLS_CLIENT_CERT_PATH'
const KEY = 'TEMPORAL_TLS_CLIENT_KEY_PATH'
const NAME = 'TEMPORAL_TLS_SERVER_NAME'
const SETTINGS = [CA, CERTIFICATE, KEY, NAME]

type Env = Record<string, string | undefined>

/**
 * Reads the TLS settings for Temporal and the files that they name. `problems` has a line for every variable
 * that is wrong, with its name and why; never a part of a file.
 */
export function readTemporalTls(env: Env): { tls: TemporalTls; problems: string[] } {
  const problems: string[] = []
  const set = SETTINGS.filter((name) => env[name] !== undefined)
  const off = env.TEMPORAL_TLS === 'false' || env.TEMPORAL_TLS === '0'
  if (off && set.length > 0) problems.push(`TEMPORAL_TLS must not be false if ${set.join(' and ')} is set`)
  if (env[CERTIFICATE] && !env[KEY]) problems.push(`${KEY} must be set too if ${CERTIFICATE} is`)
  if (env[KEY] && !env[CERTIFICATE]) problems.push(`${CERTIFICATE} must be set too if ${KEY} is`)
  const pem = 'in PEM form'
  const ca = read(CA, `a certificate ${pem}`, (bytes) => new X509Certificate(bytes))
  const crt = read(CERTIFICATE, `a certificate ${pem}`, (bytes) => new X509Certificate(bytes))
  const key = read(KEY, `a private key ${pem} without a password`, (bytes) => createPrivateKey(bytes))
  if (crt && key && !crt.parsed.checkPrivateKey(key.parsed))
    problems.push(`${KEY} must be the key of the certificate in ${CERTIFICATE}`)
  if (set.length === 0) return { tls: off ? false : isOn(env), problems }
  return {
    tls: {
      ...(env[NAME] ? { serverNameOverride: env[NAME] } : {}),
      ...(ca ? { serverRootCACertificate: ca.bytes } : {}),
      ...(crt && key ? { clientCertPair: { crt: crt.bytes, key: key.bytes } } : {}),
    },
    problems,
  }

  function read<T>(name: string, what: string, parse: (bytes: Buffer) => T) {
    const path = env[name]
    if (path === undefined) return undefined
    let bytes: Buffer
    try {
      bytes = readFileSync(path)
    } catch (error) {
      problems.push(`${name} must name a file that can be read (${(error as NodeJS.ErrnoException).code})`)
      return undefined
    }
    try {
      return { bytes, parsed: parse(bytes) }
    } catch {
      problems.push(`${name} must name a file with ${what}`)
      return undefined
    }
  }
}

// An API key is only sent over TLS, unless TEMPORAL_TLS says otherwise.
function isOn(env: Env): boolean {
  return env.TEMPORAL_TLS === undefined ? env.TEMPORAL_API_KEY !== undefined : true
}
