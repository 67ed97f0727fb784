import { BUILT_IN } from '../../connectors/catalog.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { ToolGiven } from '../ai/fromai.ts'
import { plainText } from '../texts.ts'
import { ITEMS, readServiceCall, type ServiceAction } from './action.ts'
import { SERVICES } from './mappers.ts'

/** Services as tools: the same actions, with the model's arguments in what they are given. */
export const SERVICE_TOOLS: Record<string, (given: ToolGiven) => Fields> = Object.fromEntries(
  Object.keys(SERVICES).map((type) => [`${type}Tool`, (given) => mapServiceTool(given, type)]),
)

function mapServiceTool({ node: told, tools: all, args, report }: ToolGiven, type: string): Fields {
  const node = { ...told, type, parameters: args.read(told.parameters) }
  const tools = { ...all, report }
  const service = SERVICES[type]!(node, tools)
  const input = readRows(service)
  if (service.file !== undefined)
    throw new Error(
      'it answers with a file, which a model cannot be told: get the file by a node before the agent',
    )
  if (JSON.stringify(input).includes('$binary'))
    throw new Error(
      'it sends a file of the item, which a tool does not have: send it by a node behind the agent',
    )
  const { descriptionType, toolDescription } = node.parameters
  const isTold = descriptionType !== 'auto' && plainText(toolDescription) !== ''
  return {
    type: 'CONNECTOR',
    ...(isTold ? {} : { description: describeAction(service) }),
    ...readServiceCall(node, tools, { ...service, input }),
  }
}

/** What it is given. Rows that a node before it would make of the items are one row, of the model's arguments. */
function readRows({ input, feeder }: ServiceAction): Fields {
  if (input.rows !== ITEMS) return input
  const values = feeder && objectOf(feeder.config.values)
  if (!values)
    throw new Error(
      'it writes the fields of the item, and a tool writes what the model gives: name its columns',
    )
  return { ...input, rows: [values] }
}

function describeAction({ connector, action }: ServiceAction): string {
  const { title, actions } = BUILT_IN[connector]!
  return `${title}: ${actions[action]!.summary}`
}
