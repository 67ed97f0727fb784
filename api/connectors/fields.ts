import * as v from 'valibot'
import { MAX_DOCUMENT } from '../../activities/connectors/openapi/document.ts'
import { boundedString, documentAs, objectField, trimmedString, uuidField } from '../http/fields.ts'
import { queryInteger } from '../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema, versionSchema } from '../http/responses.ts'

/** A connector's id, or the name of one that every team has. */
export const ConnectorId = v.object({
  id: v.pipe(
    v.string('must be the id of a connector, or the name of one that every team has'),
    v.regex(
      /^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/,
      'must be the id of a connector, or the name of one that every team has',
    ),
  ),
})

const name = v.pipe(
  v.string('must be a string'),
  v.regex(/^[a-z0-9][a-z0-9-]{0,59}$/, 'must be 1 to 60 small letters, digits or -'),
  v.description('What nodes name it by, once in the team'),
)
const address = v.pipe(
  boundedString(2_000),
  v.check(
    (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''),
    'must be an address that begins with https:// or http://',
  ),
)
const server = v.pipe(
  v.optional(address),
  v.description('Where the service is. Not given: as the document says'),
)
const repeatable = v.pipe(
  v.optional(
    v.pipe(
      v.array(boundedString(100), 'must be an array'),
      v.maxLength(5_000, 'must have at most 5000 entries'),
    ),
  ),
  v.description('The ids of actions that may be done twice, besides those that only read'),
)
const paging = v.pipe(
  v.optional(v.picklist(['link'], 'must be link')),
  v.description('`link`: lists have further pages, to which the header Link of their answers leads'),
)
const openapi = v.pipe(
  boundedString(MAX_DOCUMENT),
  v.description('An OpenAPI document of 2.0, 3.0 or 3.1, in JSON or YAML, or the address of one'),
)
const title = v.pipe(
  v.optional(trimmedString(100)),
  v.description('What people call it. Not given: as the document does'),
)

export const ConnectorBody = v.object({ teamId: uuidField, name, title, openapi, server, repeatable, paging })
export const ConnectorPatch = v.object({
  name: v.optional(name),
  title,
  openapi: v.optional(openapi),
  server,
  repeatable,
  paging,
})

/** A call of an action. */
const call = {
  teamId: uuidField,
  action: boundedString(100),
  input: v.optional(objectField, {}),
  credentialId: v.optional(uuidField),
  server: v.pipe(
    v.optional(address),
    v.description("Where the service is, if not at the connector's own address"),
  ),
}
export const TryBody = v.object(call)
export const OptionsBody = v.object({
  ...call,
  property: v.pipe(
    boundedString(100),
    v.description('The property of the input for which values are listed'),
  ),
})

const item = {
  id: v.pipe(
    v.string(),
    v.description('A UUID, or the name of a connector that every team has'),
    v.examples(['airtable']),
  ),
  teamId: v.nullable(idSchema),
  name: v.pipe(v.string(), v.examples(['airtable'])),
  title: v.pipe(v.string(), v.examples(['Airtable'])),
  summary: v.string(),
  kind: v.picklist(['BUILT_IN', 'OPENAPI']),
  version: versionSchema,
  signIn: v.pipe(
    v.array(v.string()),
    v.description('The types of credentials that it takes; none: it needs no signing in'),
  ),
  createdAt: v.nullable(timeSchema),
  updatedAt: v.nullable(timeSchema),
}
export const ConnectorPage = pageSchema('ConnectorPage', v.pipe(v.object(item), v.title('ConnectorItem')))

const schema = v.pipe(
  v.custom<Record<string, unknown>>(() => true),
  documentAs<Record<string, unknown>>({ type: 'object' }),
)
const ActionSchema = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['createRecord'])),
    name: v.string(),
    summary: v.string(),
    input: v.pipe(schema, v.description('A JSON Schema of what it is given')),
    output: v.nullable(schema),
    safety: v.pipe(
      v.picklist(['REPEATABLE', 'ONCE']),
      v.description('`ONCE`: what it changes must not be changed twice, so it is sent at most once'),
    ),
    signIn: v.array(v.string()),
  }),
  v.title('ConnectorAction'),
)
const detail = {
  ...item,
  server: v.nullable(v.string()),
  setup: v.pipe(v.nullable(v.string()), v.description('What one must have, and enter in its credential')),
  source: v.pipe(v.nullable(v.string()), v.description('The address of its document')),
  repeatable: v.array(v.string()),
  paging: v.nullable(v.picklist(['link'])),
  problems: v.pipe(v.array(v.string()), v.description('What of its document cannot be used, and why')),
  usedBy: v.pipe(
    v.array(
      v.object({ id: idSchema, name: v.string(), active: v.boolean(), connectorVersion: versionSchema }),
    ),
    v.description('The workflows whose published version names it, and the version of it that they have'),
  ),
}
export const ConnectorSchema = v.pipe(
  v.object({
    ...detail,
    actions: v.pipe(v.array(ActionSchema), v.description('A page of them')),
    actionCount: v.pipe(countSchema, v.description('How many there are, or fit the search')),
  }),
  v.title('Connector'),
)
export const ChangedSchema = v.pipe(
  v.object({
    ...detail,
    changes: v.object({
      added: v.array(v.string()),
      removed: v.array(v.string()),
      changed: v.array(v.string()),
    }),
  }),
  v.title('ChangedConnector'),
)
export const CreatedSchema = v.pipe(v.object(detail), v.title('NewConnector'))

export const TriedSchema = v.pipe(
  v.object({
    status: v.picklist(['SUCCESS', 'FAILED']),
    output: v.pipe(v.unknown(), v.description('What a node would output; null if it failed')),
    error: v.nullable(v.object({ type: v.string(), message: v.string() })),
    requests: v.array(
      v.object({
        method: v.string(),
        url: v.pipe(v.string(), v.description('Without its query')),
        status: v.pipe(v.nullable(v.number()), v.description('null if no answer came')),
        ms: countSchema,
      }),
    ),
    warnings: v.array(v.string()),
  }),
  v.title('ConnectorTrial'),
)
export const ChoicesSchema = v.pipe(
  v.object({ options: v.array(v.object({ value: v.string(), label: v.string() })) }),
  v.title('ConnectorOptions'),
)

export const search = v.pipe(
  v.optional(boundedString(200)),
  v.description('A text that the name, the title or the summary has in it'),
)
export const actionPaging = {
  search,
  page: v.optional(queryInteger(0, 1_000_000), '0'),
  size: v.optional(queryInteger(1, 100), '100'),
  version: v.pipe(v.optional(queryInteger(1, 1_000_000)), v.description('Not given: the newest version')),
}
