import { X509Certificate } from 'node:crypto'
import * as v from 'valibot'
import { FORWARDER_TYPES, type ForwarderInput } from '../../../db/audit/siem/forwarders.ts'
import { boundedInteger, boundedString, trimmedString, uuidField } from '../../http/fields.ts'
import { countSchema, idSchema, timeSchema } from '../../http/responses.ts'

const MAX_PEM = 20_000

const pem = v.pipe(
  boundedString(MAX_PEM),
  v.check((text) => isCertificate(text), 'must be one or more certificates in PEM'),
)

const wholeNumber = (min: number, max: number) => boundedInteger(min, max, 'must be a whole number')

const ForwarderFields = v.object({
  name: trimmedString(100),
  type: v.pipe(
    v.picklist(FORWARDER_TYPES, `must be one of ${FORWARDER_TYPES.join(', ')}`),
    v.description('SYSLOG: RFC 5424 over TLS (RFC 5425). HTTPS: a POST of a JSON array, as `siem` gives it'),
  ),
  host: v.pipe(
    v.nullish(v.pipe(trimmedString(255), v.regex(/^[^\s/@?#]+$/, 'must be a host name or an address'))),
    v.description('Of SYSLOG'),
  ),
  port: v.pipe(v.nullish(wholeNumber(1, 65_535)), v.description('Of SYSLOG: 6514 if it is not given')),
  caCertificate: v.pipe(
    v.nullish(pem),
    v.description(
      "Of SYSLOG: PEM of the only authorities that the receiver's certificate may be from. Not given: the public ones",
    ),
  ),
  url: v.pipe(
    v.nullish(
      v.pipe(
        boundedString(2_000),
        v.check(
          (url) => findUrlFault(url) === null,
          ({ input }) => findUrlFault(input as string) ?? '',
        ),
      ),
    ),
    v.description('Of HTTPS'),
  ),
  credentialId: v.pipe(
    v.nullish(uuidField),
    v.description('Of HTTPS: a credential of the team for HTTP, with which the requests are signed in'),
  ),
  enabled: v.pipe(
    v.optional(v.boolean('must be true or false')),
    v.description('Not given: true, or as it is'),
  ),
  after: v.pipe(
    v.optional(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    v.description(
      'Send the entries behind this number; 0 sends all. Not given, a new forwarder begins with the next entry, and ' +
        'one that is there goes on',
    ),
  ),
})

type GivenForwarder = v.InferOutput<typeof ForwarderFields>

const demand = (key: keyof GivenForwarder, type: string) =>
  v.forward(
    v.check<GivenForwarder, string>(
      (one) => one.type !== type || one[key] != null,
      `is required for ${type}`,
    ),
    [key] as never,
  )

const refuse = (key: keyof GivenForwarder, type: string) =>
  v.forward(
    v.check<GivenForwarder, string>((one) => one.type === type || one[key] == null, `is only for ${type}`),
    [key] as never,
  )

/** The body that describes a forwarder: each type needs its own fields, and has no use for the others. */
export const ForwarderBody = v.pipe(
  ForwarderFields,
  demand('host', 'SYSLOG'),
  demand('url', 'HTTPS'),
  refuse('host', 'SYSLOG'),
  refuse('port', 'SYSLOG'),
  refuse('caCertificate', 'SYSLOG'),
  refuse('url', 'HTTPS'),
  refuse('credentialId', 'HTTPS'),
)

export const ForwarderSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    name: v.string(),
    type: v.picklist(FORWARDER_TYPES),
    enabled: v.boolean(),
    host: v.nullable(v.string()),
    port: v.nullable(v.number()),
    caCertificate: v.nullable(v.string()),
    url: v.nullable(v.string()),
    credentialId: v.nullable(idSchema),
    after: v.pipe(countSchema, v.description('The number of the last entry that the receiver has taken')),
    waiting: v.pipe(countSchema, v.description('How many entries there are behind it')),
    missed: v.pipe(countSchema, v.description('How many entries were purged before they were sent')),
    lastSentAt: v.nullable(timeSchema),
    lastError: v.pipe(
      v.nullable(v.string()),
      v.description('Why the last try has failed; null if it has not'),
    ),
    lastErrorAt: v.nullable(timeSchema),
    failures: v.pipe(countSchema, v.description('How often it has failed since something was sent')),
    nextTryAt: v.pipe(
      v.nullable(timeSchema),
      v.description('After a failure: when it is tried again, after 5 s at first, and 15 minutes at most'),
    ),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('AuditForwarder'),
)

/** The body with everything that it may leave out. */
export function completeForwarder(given: GivenForwarder): ForwarderInput {
  const { name, type, host, port, caCertificate, url, credentialId, enabled, after } = given
  return {
    name,
    type,
    host: host ?? null,
    port: type === 'SYSLOG' ? (port ?? 6514) : null,
    caCertificate: caCertificate ?? null,
    url: url ?? null,
    credentialId: credentialId ?? null,
    enabled,
    after,
  }
}

function isCertificate(text: string): boolean {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const rest = blocks.reduce((left, block) => left.replace(block, ''), text)
  if (blocks.length === 0 || rest.includes('-----')) return false
  try {
    for (const block of blocks) new X509Certificate(block)
    return true
  } catch {
    return false
  }
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** The fault of a receiver's URL; null if it has none. */
export function findUrlFault(text: string): string | null {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return 'must be a URL that begins with https://'
  if (url.username || url.password) return 'must not have a user name or a password: use a credential'
  if (url.hash) return 'must not have a fragment'
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    return 'must begin with https://; http:// is only for this machine'
  return null
}
