import { Hono } from 'hono'
import * as v from 'valibot'
import { CREDENTIAL_TYPE_NAMES, type CredentialType, credentialKind } from '../../db/credentials/types.ts'
import { CREDENTIAL_USES } from '../../workflows/secrets/uses.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'

const KEY_KINDS = ['text', 'lines', 'url', 'number', 'boolean', 'choice', 'list'] as const
type KeyKind = (typeof KEY_KINDS)[number]

const KeySchema = v.object({
  name: v.pipe(v.string(), v.examples(['apiKey'])),
  kind: v.pipe(
    v.picklist(KEY_KINDS),
    v.description('What its value is; `lines`: a text of several lines, `list`: a list of texts'),
  ),
  required: v.boolean(),
  requiredUnless: v.optional(
    v.pipe(v.array(v.string()), v.description('It is required too, unless all of these keys are given')),
  ),
  requiredUnlessIs: v.optional(
    v.pipe(
      v.string(),
      v.description('What the keys of `requiredUnless` must be, so that it is not required'),
    ),
  ),
  secret: v.pipe(v.boolean(), v.description('Whether its value is masked wherever it turns up')),
  directs: v.pipe(
    v.boolean(),
    v.description('Whether it decides where secrets are sent: a change of it needs all secrets again'),
  ),
  options: v.optional(v.pipe(v.array(v.string()), v.description('What a `choice` may be'))),
  default: v.optional(v.unknown()),
})
const CredentialTypeSchema = v.pipe(
  v.object({
    type: v.picklist(CREDENTIAL_TYPE_NAMES),
    summary: v.string(),
    uses: v.pipe(
      v.array(v.picklist(CREDENTIAL_USES)),
      v.description('What it is good for; a node takes the types of its `credentialUses`'),
    ),
    hosts: v.pipe(
      v.nullable(v.array(v.string())),
      v.description("The vendor's hosts: the only ones its requests reach, unless it has a key for another"),
    ),
    keys: v.array(KeySchema),
  }),
  v.title('CredentialTypeItem'),
)

/** The types of credentials, with the keys of their data. */
export function createCredentialTypeRoutes() {
  const types = CREDENTIAL_TYPE_NAMES.map((type) => {
    const { summary, uses, hosts } = credentialKind(type)
    return { type, summary, uses: [...uses], hosts: hosts ? [...hosts] : null, keys: describeKeys(type) }
  })
  return new Hono<AppEnv>().get(
    '/api/credential-types',
    accept({
      id: 'listCredentialTypes',
      tag: 'Credentials',
      summary: 'List the types of credentials',
      role: 'user',
      responses: { 200: { description: 'Every type of credential', schema: v.array(CredentialTypeSchema) } },
    }),
    (c) => c.json(types),
  )
}

function describeKeys(type: CredentialType) {
  const { data, secrets, directs, conditional } = credentialKind(type)
  return Object.entries<v.GenericSchema>(data.entries).map(([name, schema]) => {
    const { wrapped, default: byDefault } = schema as v.OptionalSchema<v.GenericSchema, unknown>
    const isOptional = schema.type === 'optional'
    const inner = isOptional ? wrapped : schema
    const { options } = inner as { options?: unknown }
    return {
      name,
      kind: nameKind(inner),
      required: !isOptional,
      ...(conditional?.keys.includes(name)
        ? {
            requiredUnless: [...conditional.unless],
            ...(conditional.is === undefined ? {} : { requiredUnlessIs: conditional.is }),
          }
        : {}),
      secret: secrets.includes(name),
      directs: directs.includes(name),
      ...(inner.type === 'picklist' ? { options: options as string[] } : {}),
      ...(isOptional && byDefault !== undefined ? { default: byDefault } : {}),
    }
  })
}

function nameKind(schema: v.GenericSchema): KeyKind {
  const { kind } = v.getMetadata(schema)
  const marked = KEY_KINDS.find((one) => one === kind)
  if (marked) return marked
  if (schema.type === 'picklist') return 'choice'
  if (schema.type === 'array') return 'list'
  return schema.type === 'boolean' ? 'boolean' : 'text'
}
