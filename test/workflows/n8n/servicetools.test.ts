import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { agentDocument, type Part, tool } from '../../support/agents/n8n.ts'
import { importDocument } from './importing.ts'

type Fields = Record<string, unknown>

/** What an agent's tool has become, or why it was not imported. */
function convert(part: Part): { made: Fields; told: string } {
  const document = agentDocument([part], {}, 'manualTrigger')
  const { nodes, problems, report } = importDocument(document, () => randomUUID())!
  expect(problems).toEqual([])
  const agent = nodes.find(({ name }) => String(name).startsWith('Agent'))!
  const [made = {}] = (agent.config.tools ?? []) as Fields[]
  return { made, told: JSON.stringify(report.problems) }
}

/** A tool of the version that n8n's editor makes now. */
const service = (name: string, type: string, parameters: object) =>
  tool(name, type, parameters, { airtableTool: 2.1, googleSheetsTool: 4.5, googleDriveTool: 3 }[type] ?? 2.2)

const say = (name: string, type = 'string') =>
  `={{ /*n8n-auto-generated-fromAI-override*/ $fromAI('${name}', \`\`, '${type}') }}`
const argument = (name: string) => expect.stringContaining(`$args["${name}"]`)

test.each([
  [
    service('Find', 'airtableTool', {
      ...{ operation: 'search', toolDescription: 'Finds people' },
      ...{ base: { mode: 'list', value: 'appB' }, table: { mode: 'list', value: 'tblT' } },
      filterByFormula: `=AND(Name="{{ $fromAI('who', 'The name', 'string', '') }}")`,
    }),
    {
      ...{ connector: 'airtable', action: 'listRecords', description: 'Finds people' },
      input: { base: 'appB', table: 'tblT', filterByFormula: argument('who') },
      parameters: {
        properties: { who: { type: 'string', description: 'The name', default: '' } },
      },
    },
  ],
  [
    service('Add', 'airtableTool', {
      ...{
        operation: 'create',
        base: { mode: 'list', value: 'appB' },
        table: { mode: 'list', value: 'tblT' },
      },
      columns: {
        mappingMode: 'defineBelow',
        value: { Name: say('Name'), Size: say('Size', 'number') },
        schema: [{ id: 'Size', type: 'number' }],
      },
    }),
    {
      ...{
        connector: 'airtable',
        action: 'createRecord',
        description: 'Airtable: Adds a record to a table.',
      },
      input: { fields: { Name: argument('Name'), Size: argument('Size') } },
      parameters: { required: ['Name', 'Size'] },
    },
  ],
  [
    service('Note', 'googleSheetsTool', {
      ...{ operation: 'append', documentId: { mode: 'id', value: 'book' }, toolDescription: '=Notes it\n' },
      sheetName: { mode: 'list', value: 'gid=0' },
      columns: { mappingMode: 'defineBelow', value: { Name: say('Name'), From: 'the chat' } },
    }),
    {
      ...{ connector: 'google-sheets', action: 'appendRows', description: 'Notes it' },
      input: { spreadsheet: 'book', sheet: 'gid=0', rows: [{ Name: argument('Name'), From: 'the chat' }] },
    },
  ],
  [
    service('Mails', 'gmailTool', {
      ...{ operation: 'getAll', returnAll: say('All', 'boolean'), limit: say('Limit', 'number') },
      filters: { q: say('Search'), receivedAfter: say('After') },
    }),
    {
      ...{ connector: 'gmail', action: 'searchMessages' },
      input: { limit: argument('All'), query: argument('After') },
      parameters: { required: ['All', 'Limit', 'Search', 'After'] },
    },
  ],
  [
    service('Search', 'googleDriveTool', { resource: 'fileFolder', queryString: say('What') }),
    { connector: 'google-drive', action: 'searchFiles', input: { query: argument('What') } },
  ],
  [
    service('Pages', 'notionTool', { operation: 'search', text: say('What'), limit: 4 }),
    { connector: 'notion', action: 'search', input: { limit: 4 } },
  ],
  [
    service('Book', 'googleCalendarTool', {
      ...{ calendar: { mode: 'list', value: 'work' }, start: say('Start'), end: say('End') },
      additionalFields: { summary: say('Title'), attendees: [say('Guest')] },
      useDefaultReminders: say('Usual', 'boolean'),
    }),
    {
      ...{ connector: 'google-calendar', action: 'createEvent' },
      input: {
        ...{ calendar: 'work', start: argument('Start'), end: argument('End'), summary: argument('Title') },
        ...{ attendees: argument('Guest'), reminders: argument('Usual') },
      },
    },
  ],
])('a service as a tool takes the arguments of the model: %#', (part, made) => {
  expect(convert(part).made).toMatchObject({
    type: 'CONNECTOR',
    name: part.name,
    needsCredential: expect.anything(),
    ...made,
  })
})

test.each([
  [
    service('Note', 'googleSheetsTool', {
      ...{
        operation: 'append',
        documentId: { mode: 'id', value: 'b' },
        sheetName: { mode: 'id', value: '0' },
      },
      columns: { mappingMode: 'autoMapInputData' },
    }),
    'a tool writes what the model gives',
  ],
  [
    service('Load', 'googleDriveTool', { operation: 'download', fileId: say('id') }),
    'it answers with a file',
  ],
  [service('Save', 'googleDriveTool', { operation: 'upload' }), 'it sends a file of the item'],
])('a service as a tool that a model cannot use is not imported: %#', (part, why) => {
  const { made, told } = convert(part)
  expect(made).toEqual({})
  expect(told).toContain(why)
})
