import { Hono } from 'hono'
import * as v from 'valibot'
import {
  createCredential,
  deleteCredential,
  listCredentialItems,
  readCredential,
  updateCredential,
} from '../../db/credentials/credentials.ts'
import { listUnknownKeys, readCredentialData } from '../../db/credentials/data.ts'
import { CREDENTIAL_TYPE_NAMES, isCredentialType } from '../../db/credentials/types.ts'
import { listCredentialUsage } from '../../db/credentials/usage.ts'
import { askForSimilar } from '../../workflows/suggest.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, documentAs, objectField, trimmedString, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import {
  countSchema,
  EXAMPLE_ID,
  idSchema,
  LOCATION_HEADER,
  messageResponse,
  pageSchema,
  timeSchema,
} from '../http/responses.ts'
import { addProblemIssues } from '../workflows/graph.ts'
import { nameUnknownFields } from '../workflows/unknown.ts'

const typeField = v.pipe(
  v.string('must be a string'),
  documentAs<string>({ type: 'string', enum: CREDENTIAL_TYPE_NAMES }),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const given = dataset.value
    if (isCredentialType(given)) return given
    addIssue({
      message: `must be one of ${CREDENTIAL_TYPE_NAMES.join(', ')}${askForSimilar(given, CREDENTIAL_TYPE_NAMES)}`,
    })
    return NEVER
  }),
)
const data = v.pipe(
  objectField,
  documentAs<Record<string, unknown>>({
    type: 'object',
    description: 'The keys that `GET /api/credential-types` lists for the type',
  }),
)

const CredentialListQuery = v.object({ teamId: uuidField, type: v.optional(typeField) })
const NewCredential = v.pipe(
  v.object({ name: trimmedString(200), type: typeField, teamId: uuidField, data }),
  // Also where another field is wrong, so that everything is named at once.
  v.rawCheck(({ dataset, addIssue }) => {
    const { type, data: given } = Object(dataset.value)
    if (typeof type !== 'string' || !isCredentialType(type) || !v.is(objectField, given)) return
    addProblemIssues(readCredentialData(type, given).problems, addIssue)
  }),
)
const CredentialPatch = v.object({
  name: v.optional(trimmedString(200)),
  type: v.optional(v.pipe(v.string('must be a string'), v.description('Only what it is already'))),
  data: v.optional(
    v.pipe(
      objectField,
      documentAs<Record<string, unknown>>({
        type: 'object',
        description: 'The keys to change. null removes one; those that are missing stay',
      }),
    ),
  ),
})
const DeleteQuery = v.object({
  force: v.optional(
    v.pipe(
      v.picklist(['true', 'false'], 'must be true or false'),
      v.transform((value) => value === 'true'),
    ),
    'false',
  ),
})

const NewCredentialSchema = v.pipe(
  v.object({
    id: idSchema,
    name: v.pipe(v.string(), v.examples(['CRM'])),
    type: v.picklist(CREDENTIAL_TYPE_NAMES),
    teamId: idSchema,
    createdAt: timeSchema,
  }),
  v.title('NewCredential'),
)
const item = {
  ...NewCredentialSchema.entries,
  updatedAt: timeSchema,
  lastTestedAt: v.nullable(timeSchema),
  testStatus: v.nullable(v.picklist(['SUCCESS', 'FAILED'])),
}
const CredentialItemSchema = v.pipe(v.object(item), v.title('CredentialItem'))
const CredentialSchema = v.pipe(
  v.object({
    ...item,
    testMessage: v.nullable(v.pipe(v.string(), v.description('What the last test said'))),
    keys: v.pipe(
      v.array(v.string()),
      v.description('The names of the keys of its data; their values are never read out'),
      v.examples([['token', 'allowedHosts']]),
    ),
    allowedHosts: v.nullable(
      v.pipe(
        v.array(v.string()),
        v.description('The only hosts that its requests may go to; null if it names none'),
        v.examples([['api.example.com']]),
      ),
    ),
    expiresAt: v.nullable(v.pipe(timeSchema, v.description('OAUTH2: when the access token ends'))),
    broken: v.nullable(
      v.pipe(v.string(), v.description('Why it cannot be used until somebody changes or connects it')),
    ),
  }),
  v.title('Credential'),
)
const UsageSchema = v.pipe(
  v.object({
    workflowId: idSchema,
    workflowName: v.string(),
    active: v.boolean(),
    versions: v.pipe(countSchema, v.description('How many of its versions name the credential')),
    inDraft: v.pipe(v.boolean(), v.description('Whether its draft does')),
    nodes: v.pipe(
      v.array(v.object({ id: v.string(), name: v.string(), type: v.string() })),
      v.description('Those of its published version; none if only other versions name it'),
    ),
  }),
  v.title('CredentialUsage'),
)
const BY_ID = { id: '$response.body#/id' }

/** A team's credentials: what its nodes sign in elsewhere with. Their data is only ever written. */
export function createCredentialRoutes() {
  return new Hono<AppEnv>().route('/', createCredentialListRoutes()).route('/', createOneCredentialRoutes())
}

function createCredentialListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/credentials',
      accept({
        id: 'listCredentials',
        tag: 'Credentials',
        summary: "List a team's credentials",
        description: 'The newest first, without their data.',
        role: 'BUILDER',
        query: CredentialListQuery,
        responses: { 200: { description: 'The credentials', schema: v.array(CredentialItemSchema) } },
      }),
      async (c) => c.json(await listCredentialItems(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/credentials',
      accept({
        id: 'createCredential',
        tag: 'Credentials',
        summary: 'Create a credential',
        description:
          'Its `data` is sealed under a key of its own, and no response ever has it. `GET /api/credential-types` ' +
          'says which keys each type needs. Keys that the type does not know are left out, and are named in the ' +
          'X-Unknown-Fields header. A team has at most 1,000 credentials.',
        role: 'BUILDER',
        json: NewCredential,
        example: {
          name: 'CRM',
          type: 'HTTP_BEARER',
          teamId: EXAMPLE_ID,
          data: { token: 'the token', allowedHosts: ['api.example.com'] },
        },
        responses: {
          201: {
            description: 'The credential',
            schema: NewCredentialSchema,
            headers: LOCATION_HEADER,
            links: {
              readCredential: { parameters: BY_ID },
              updateCredential: { parameters: BY_ID },
              listCredentialUsage: { parameters: BY_ID },
              deleteCredential: { parameters: BY_ID },
            },
          },
        },
        faults: [409],
      }),
      async (c) => {
        const input = c.req.valid('json')
        const credential = await createCredential(c.get('scope'), input)
        tellUnknownKeys(c, listUnknownKeys(input.type, input.data))
        c.header('Location', `/api/credentials/${credential.id}`)
        return c.json(credential, 201)
      },
    )
}

function createOneCredentialRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/credentials/:id',
      accept({
        id: 'readCredential',
        tag: 'Credentials',
        summary: 'Read a credential without its data',
        role: 'BUILDER',
        of: 'credentials',
        params: ById,
        responses: { 200: { description: 'The credential', schema: CredentialSchema } },
      }),
      async (c) => c.json(await readCredential(c.get('scope'), c.req.valid('param').id)),
    )
    .put(
      '/api/credentials/:id',
      accept({
        id: 'updateCredential',
        tag: 'Credentials',
        summary: 'Change a credential',
        description:
          'Changes the keys of `data` that are given, removes those that are null, and keeps the others; the whole ' +
          'must then be valid for the type, which never changes. To change or remove a key that `directs` secrets (see ' +
          '`GET /api/credential-types`) demands all secrets that the credential has in the same request, else 400 names ' +
          'those that are missing; `allowedHosts` may lose hosts without. The tokens of OAUTH2 are then removed. Attempts that start afterwards use the new data. ' +
          'A change of the data clears the result of the last test.',
        role: 'BUILDER',
        of: 'credentials',
        params: ById,
        json: CredentialPatch,
        example: { name: 'CRM of the sales team' },
        responses: { 200: { description: 'The credential', schema: CredentialSchema } },
        faults: [409],
      }),
      async (c) => {
        const patch = c.req.valid('json')
        const credential = await updateCredential(c.get('scope'), c.req.valid('param').id, patch)
        if (patch.data) tellUnknownKeys(c, listUnknownKeys(credential.type, patch.data))
        return c.json(credential)
      },
    )
    .delete(
      '/api/credentials/:id',
      accept({
        id: 'deleteCredential',
        tag: 'Credentials',
        summary: 'Delete a credential',
        description:
          'Refused with 409 while active workflows use it, unless an ADMIN says `force=true`. Attempts that need it ' +
          'from then on fail, and are not tried again.',
        role: 'BUILDER',
        of: 'credentials',
        params: ById,
        query: DeleteQuery,
        responses: { 200: messageResponse('Credential deleted') },
        faults: [409],
      }),
      async (c) => {
        await deleteCredential(c.get('scope'), c.req.valid('param').id, c.req.valid('query').force)
        return c.json({ message: 'Credential deleted' })
      },
    )
    .get(
      '/api/credentials/:id/usage',
      accept({
        id: 'listCredentialUsage',
        tag: 'Credentials',
        summary: 'List the workflows that name a credential',
        description:
          'Those whose published version names it first, by name; then those whose draft does, and those of which only ' +
          'older versions do.',
        role: 'BUILDER',
        of: 'credentials',
        params: ById,
        query: v.object(paging),
        responses: {
          200: { description: 'One page', schema: pageSchema('CredentialUsagePage', UsageSchema) },
        },
      }),
      async (c) =>
        c.json(await listCredentialUsage(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
}

function tellUnknownKeys(c: Parameters<typeof nameUnknownFields>[0], keys: string[]): void {
  nameUnknownFields(
    c,
    keys.map((key) => `data.${key}`),
  )
}
