import * as v from 'valibot'
import { described } from '../object.ts'
import { nodeTypeRow } from './fields.ts'
import { toolArguments, toolDescription, toolName } from './tools.ts'

/** How the names of the tools begin that the service itself offers over MCP. */
export const OWN_TOOL = 'perdure_'

/** What a tool without a schema of its own is called with: any object. */
const ANY_ARGUMENTS = { type: 'object' } as const

/** Node types for clients that speak MCP, the Model Context Protocol. */
export const MCP_NODES = {
  MCP_TRIGGER: nodeTypeRow('trigger', {
    summary:
      'Makes the active workflow a tool that MCP clients call at /api/mcp, and starts an execution for each call; its ' +
      'output is the arguments of the call.',
    config: v.object(
      described(
        {
          name: v.pipe(
            toolName,
            v.check(
              (name) => !name.startsWith(OWN_TOOL),
              `must not begin with ${OWN_TOOL}, as the tools of the service itself do`,
            ),
          ),
          description: toolDescription,
          inputSchema: v.optional(toolArguments, ANY_ARGUMENTS),
        },
        {
          name: 'What clients call the tool by. No other active workflow of the team may have a tool of this name.',
          description: 'Tells the model of the client what the tool is good for.',
          inputSchema:
            'What the tool is called with, as the JSON Schema of an object. A call that does not fit starts nothing.',
        },
      ),
    ),
    main: ['name', 'description', 'inputSchema'],
    texts: () => () => 'plain',
  }),
} as const
