import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { keepText } from '../texts.ts'

/** The node that checks texts, or redacts what is personal or secret in them. */
export const GUARDRAIL_MAPPERS: Record<string, NodeMapper> = { guardrails: mapGuardrails }

/** n8n's kinds of personal data that a GUARDRAIL finds too. */
const KINDS: Record<string, string> = {
  EMAIL_ADDRESS: 'email',
  US_SSN: 'ssn',
  CREDIT_CARD: 'credit_card',
  PHONE_NUMBER: 'phone',
  IP_ADDRESS: 'ip_address',
}

/**
 * A node that redacts what a GUARDRAIL redacts too becomes one. All others are not imported: what is looked for in
 * another way, or not at all, would go on as if it had been checked.
 */
function mapGuardrails({ parameters, raw }: SourceNode, { report }: MapperTools): MappedNode {
  const { operation = 'classify', text, guardrails } = parameters
  if (operation !== 'sanitize')
    throw new Error(
      'it judges texts by thresholds, lists and prompts of its own: make a GUARDRAIL, with rules of the team for its ' +
        'keywords, expressions and prompts',
    )
  if (raw.continueOnFail === true || String(raw.onError ?? '').startsWith('continue'))
    throw new Error('it goes on where a text could not be redacted')
  const piiTypes = listKinds(objectOf(guardrails)).join(',')
  report(
    'parameter',
    'parameters.guardrails',
    'Perdure finds personal data and secrets in its own way, with markers like [EMAIL], and the output is {guardrailsInput} ' +
      "without n8n's checks: see whether the texts are redacted as you need it.",
    guardrails,
  )
  return {
    ...mapEach('GUARDRAIL', { text: keepText(text), redactPii: true, piiTypes }),
    shaper: {
      type: 'TRANSFORM',
      config: { expression: '{"guardrailsInput": $item.text}' },
      perItem: true,
      handle: 'passed',
    },
  }
}

function listKinds({ pii, secretKeys, ...others }: Fields): string[] {
  const missing = Object.keys(others)
  if (missing.length > 0)
    throw new Error(`it redacts by ${missing.join(', ')}, and a GUARDRAIL only personal data and secret keys`)
  const kinds = secretKeys === undefined ? [] : ['api_key', 'jwt']
  if (pii !== undefined) kinds.unshift(...listPersonal(objectOf(objectOf(pii).value)))
  if (kinds.length === 0) throw new Error('it has no guardrails')
  return kinds
}

function listPersonal({ type = 'all', entities }: Fields): string[] {
  const known = Object.keys(KINDS).join(', ')
  if (type !== 'selected' || !Array.isArray(entities))
    throw new Error(
      `it redacts all kinds of personal data that n8n knows, and Perdure ${known}: select of these`,
    )
  const unknown = entities.filter((entity) => !Object.hasOwn(KINDS, String(entity)))
  if (unknown.length > 0) throw new Error(`it redacts ${unknown.join(', ')}, and Perdure knows only ${known}`)
  return entities.map((entity) => KINDS[String(entity)]!)
}
