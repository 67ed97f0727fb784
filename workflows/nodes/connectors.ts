import * as v from 'valibot'
import { described } from '../object.ts'
import { NEEDS_CREDENTIAL, neededField } from './calls.ts'
import { anyObject, computed, credentialField, nodeTypeRow, textField, wholeNumber } from './fields.ts'

/** Names something by its literal id or name, so that every reader sees which one. */
const literal = (what: string) =>
  v.pipe(
    textField,
    v.maxLength(200, 'must have at most 200 characters'),
    v.check(
      (name) => !name.includes('{{') && !name.startsWith('='),
      `must be ${what} as it stands, without {{ }}`,
    ),
  )

/** The fields of a node, or of an agent's tool, that carries out an action of a connector. */
export const connectorFields = described(
  {
    connector: literal('the name of a connector'),
    action: literal('the name of an action'),
    version: v.optional(wholeNumber(1, 1_000_000)),
    credentialId: v.optional(credentialField),
    needsCredential: v.optional(neededField),
    input: v.optional(computed(anyObject)),
    server: v.optional(literal('an address')),
    repeat: v.optional(v.boolean('must be true or false'), false),
    output: v.optional(v.picklist(['answer', 'input'], 'must be answer or input'), 'answer'),
  },
  {
    connector:
      "The service: the name of a connector, such as google-sheets, or one of the team's own, by its id or its name.",
    action: 'What is done there.',
    version: 'The version of the connector; the newest one as the workflow is saved, unless it is set.',
    credentialId: 'The account that does it.',
    needsCredential: NEEDS_CREDENTIAL,
    input:
      "What the action is given: an object with the keys that its form shows. Without it nothing, and for an agent's tool the arguments of its call.",
    server: "Where the service is, if that is not the connector's own address.",
    repeat: 'Rather twice than never: does it again if nobody knows whether it was done.',
    output: 'What goes on: what the service answers, or the input (with perItem: the item) as it came.',
  },
)

/** Node types that call services by what connectors say of them. */
export const CONNECTOR_NODES = {
  CONNECTOR: nodeTypeRow('effect', {
    summary:
      'Carries out an action of a service, never twice if that must not be; outputs what the service answers.',
    config: v.object(connectorFields),
    main: ['connector', 'action', 'credentialId', 'input'],
    credentialUses: ['HTTP'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 300_000,
  }),
} as const
