/** Stands in lists of types for a connection to an earlier node, at which an execution stops. */
export const WAY_BACK = 'a way back'

/** What stops templates, by the work that would let them pass. A type that is in no list is a vendor's. */
const FAMILIES: Record<string, string[]> = {
  'ways back': [WAY_BACK],
  'calls of workflows': ['executeWorkflow', 'toolWorkflow'],
  messages: ['emailSend', 'telegram', 'slack', 'discord', 'mattermost', 'whatsApp', 'twilio'],
  files: [
    ...['extractFromFile', 'convertToFile', 'spreadsheetFile', 'moveBinaryData', 'compression', 'readPDF'],
    ...['editImage'],
  ],
  SQL: ['postgres', 'mySql', 'supabase'],
  forms: ['form', 'formTrigger'],
  'data tables': ['dataTable'],
  'files and commands of the machine': [
    ...[
      'executeCommand',
      'readWriteFile',
      'readBinaryFile',
      'readBinaryFiles',
      'writeBinaryFile',
      'ssh',
      'git',
    ],
    ...['localFileTrigger'],
  ],
  core: [
    ...['httpRequest', 'respondToWebhook', 'code', 'function', 'functionItem', 'splitInBatches', 'itemLists'],
    ...[
      'removeDuplicates',
      'set',
      'merge',
      'if',
      'switch',
      'filter',
      'sort',
      'limit',
      'aggregate',
      'summarize',
    ],
    ...[
      'splitOut',
      'renameKeys',
      'compareDatasets',
      'dateTime',
      'crypto',
      'html',
      'htmlExtract',
      'xml',
      'markdown',
    ],
    ...['wait', 'executionData', 'n8n', 'jwt', 'totp', 'debugHelper', 'start', 'ai', 'stickyNote'],
  ],
}

const BY_TYPE = new Map(
  Object.entries(FAMILIES).flatMap(([family, types]) => types.map((type) => [type, family])),
)

/** The family of a node's full type in n8n. */
function nameFamily(fullType: string): string {
  const at = fullType.lastIndexOf('.')
  const own = BY_TYPE.get(fullType.slice(at + 1))
  if (own !== undefined) return own
  const scope = fullType.slice(0, at)
  if (scope.endsWith('n8n-nodes-langchain')) return 'AI'
  return scope === 'n8n-nodes-base' ? 'vendors' : 'nodes of others'
}

/** `alone`: the templates that this family alone stops. `next`: what it would gain after all that are named before it. */
export type Gain = { family: string; templates: number; alone: number; next: number }

/**
 * What stops templates, by family, in the order in which mending them would let the most pass: each list has the types
 * that stop one template.
 */
export function rankFamilies(stopped: string[][]): Gain[] {
  const left = stopped.map((types) => new Set(types.map(nameFamily)))
  const first = left.map((families) => new Set(families))
  const countOnly = (lists: Set<string>[], family: string) =>
    lists.filter((families) => families.size === 1 && families.has(family)).length
  const open = new Set(left.flatMap((families) => [...families]))
  const gains: Gain[] = []
  while (open.size > 0) {
    const holds = (family: string) => left.filter((families) => families.has(family)).length
    const [next] = [...open].sort((a, b) => countOnly(left, b) - countOnly(left, a) || holds(b) - holds(a))
    gains.push({
      family: next!,
      templates: first.filter((families) => families.has(next!)).length,
      alone: countOnly(first, next!),
      next: countOnly(left, next!),
    })
    open.delete(next!)
    for (const families of left) families.delete(next!)
  }
  return gains
}
