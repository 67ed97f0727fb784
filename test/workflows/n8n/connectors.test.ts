import { expect, test } from 'vitest'
import { convertWorkflow } from '../../../workflows/n8n/convert.ts'
import { atOnce } from '../../support/atonce.ts'
import { importDocument } from './importing.ts'

type Fields = Record<string, unknown>

/** A document with one node of that type behind a manual trigger, and what it became. */
function importNode(type: string, typeVersion: number, parameters: Fields, more: Fields = {}) {
  const node = { name: 'Do', type: `n8n-nodes-base.${type}`, typeVersion, parameters, ...more }
  const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger', typeVersion: 1, parameters: {} }
  const main = [[{ node: 'Do', type: 'main', index: 0 }]]
  const document = { nodes: [start, node], connections: { Start: { main } }, settings: {} }
  const { nodes, problems, report } = importDocument(document)!
  const { needs } = atOnce(convertWorkflow(document, () => undefined))!
  expect(problems).toEqual([])
  const all = nodes as { type: string; config: Fields; perItem?: true; allItems?: true }[]
  const made = all.find((one) => !one.type.endsWith('TRIGGER'))!
  return { ...made, report, needs, shaper: all[2]?.config.expression }
}

const base = { mode: 'url', value: 'https://airtable.com/appB12/tblT12/viw1' }
const table = { mode: 'list', value: 'tblT12' }
const place = { base: 'appB12', table: 'tblT12' }

test.each([
  [
    {
      operation: 'search',
      base,
      table,
      filterByFormula: '={A} = "{{ $json.a }}"',
      returnAll: false,
      limit: 1,
    },
    'listRecords',
    { ...place, filterByFormula: '={A} = "{{ $json.a }}"', limit: 1 },
  ],
  [{ base, table, id: '={{ $json.id }}' }, 'getRecord', { ...place, record: '={{ $json.id }}' }],
  [
    {
      ...{ operation: 'create', base, table, options: {} },
      columns: { mappingMode: 'defineBelow', value: { Name: '={{ $json.n }}', Done: true }, schema: [] },
    },
    'createRecord',
    { ...place, fields: { Name: '={{ $json.n }}', Done: true }, skipEmpty: true },
  ],
  [
    {
      ...{ operation: 'update', base, table, options: { typecast: true } },
      columns: { mappingMode: 'autoMapInputData', matchingColumns: ['id'], value: null },
    },
    'updateRecord',
    {
      ...place,
      fields: '={{ Object.fromEntries(Object.entries($json).filter(([key]) => !["id"].includes(key))) }}',
      typecast: true,
      skipEmpty: true,
      record: '={{ $json.id }}',
    },
  ],
  [
    {
      ...{ operation: 'upsert', base, table, options: {} },
      columns: { mappingMode: 'defineBelow', matchingColumns: ['Name'], value: { Name: 'Ada' } },
    },
    'upsertRecord',
    { ...place, fields: { Name: 'Ada' }, keys: ['Name'], skipEmpty: true },
  ],
  [{ operation: 'deleteRecord', base, table, id: 'rec1' }, 'deleteRecord', { ...place, record: 'rec1' }],
  [{ resource: 'base', operation: 'getSchema', base }, 'listTables', { base: 'appB12' }],
])('Airtable with %j becomes %s', (parameters, action, input) => {
  const { type, config, needs, perItem } = importNode('airtable', 2.1, parameters)
  expect(type).toBe('CONNECTOR')
  expect(config).toMatchObject({ connector: 'airtable', action })
  expect(config.input).toEqual(input)
  expect(perItem).toBe(true)
  expect(needs).toMatchObject([{ type: 'airtableTokenApi', as: 'AIRTABLE' }])
})

test('what the first version of Airtable does once for all items is done once', () => {
  const { allItems, config, report } = importNode('airtable', 1, {
    ...{ operation: 'list', application: 'appB', table: 'Cu stomers' },
    additionalOptions: { fields: ['A'], sort: { property: [{ field: 'A', direction: 'desc' }] } },
  })
  expect(allItems).toBe(true)
  expect(config.input).toEqual({
    ...{ base: 'appB', table: 'Cu stomers', fields: ['A'] },
    sort: [{ field: 'A', direction: 'desc' }],
  })
  expect(JSON.stringify(report.problems)).toContain('Airtable has switched off')
})

test.each([
  ['airtable', 2.1, { operation: 'search', options: { downloadFields: ['A'] } }, 'it downloads attachments'],
  ['notion', 1, { resource: 'user' }, 'it is of version 1'],
  [
    'notion',
    2.2,
    { resource: 'block', operation: 'getAll', fetchNestedBlocks: true },
    'blocks inside of blocks',
  ],
  [
    'notion',
    2.2,
    { resource: 'databasePage', operation: 'get', pageId: { mode: 'url', value: 'x' } },
    'a URL',
  ],
  ['airtable', 2.1, { operation: 'move' }, 'Perdure has no "move" of "record"'],
])('%s %s with %j stops by name', (type, version, parameters, why) => {
  const { type: made, report } = importNode(type, version, { base, table, ...parameters })
  expect(made).toBe('STOP_AND_ERROR')
  expect(report.problems.map(({ message }) => message).join()).toContain(why)
})

const id = '11111111-2222-3333-4444-555555555555'
const page = { mode: 'url', value: `https://www.notion.so/A-page-${id.replaceAll('-', '')}` }
const database = { mode: 'list', value: id }
const speaks = { notionVersion: '2021-08-16' }

test.each([
  [
    { resource: 'databasePage', operation: 'get', pageId: page },
    'getPage',
    { page: id.replaceAll('-', ''), simple: true },
  ],
  [
    {
      ...{
        resource: 'databasePage',
        operation: 'getAll',
        databaseId: database,
        simple: false,
        returnAll: true,
      },
      ...{ filterType: 'manual', matchType: 'allFilters' },
      filters: {
        conditions: [
          { key: 'State|select', condition: 'equals', selectValue: '={{ $json.s }}' },
          { key: 'Due|date', condition: 'is_empty' },
          { key: 'Text|rich_text', condition: 'contains', richTextValue: 'x' },
        ],
      },
      options: { sort: { sortValue: [{ key: 'Due|date', direction: 'descending' }] } },
    },
    'queryDatabase',
    {
      database: id,
      filter: {
        and: [
          { property: 'State', select: { equals: '={{ $json.s }}' } },
          { property: 'Due', date: { is_empty: true } },
          { property: 'Text', text: { contains: 'x' } },
        ],
      },
      sorts: [{ direction: 'descending', property: 'Due' }],
    },
  ],
  [
    {
      ...{ resource: 'databasePage', databaseId: database, title: '={{ $json.t }}', options: { icon: 'x' } },
      propertiesUi: {
        propertyValues: [
          { key: 'Text|rich_text', textContent: 'a' },
          { key: 'N|number', numberValue: 3 },
          { key: 'Done|checkbox', checkboxValue: true },
          { key: 'State|status', statusValue: 'Open' },
        ],
      },
      blockUi: { blockValues: [{ type: 'to_do', textContent: 'Do', checked: true }] },
    },
    'createDatabasePage',
    {
      ...{ database: id, title: '={{ $json.t }}', icon: { emoji: 'x' }, simple: true },
      properties: {
        Text: { rich_text: [{ text: { content: 'a' } }] },
        N: { number: 3 },
        Done: { checkbox: true },
        State: { status: { name: 'Open' } },
      },
      children: [
        { object: 'block', type: 'to_do', to_do: { checked: true, text: [{ text: { content: 'Do' } }] } },
      ],
    },
  ],
  [{ operation: 'archive', pageId: page, simple: false }, 'archivePage', { page: id.replaceAll('-', '') }],
  [{ operation: 'search', text: 'x', limit: 3 }, 'search', { query: 'x', limit: 3, simple: true }],
  [
    { resource: 'block', operation: 'getAll', blockId: page, returnAll: true },
    'listBlocks',
    { block: id.replaceAll('-', ''), simple: true },
  ],
  [{ resource: 'user', operation: 'getAll' }, 'listUsers', { limit: 50 }],
])('Notion with %j becomes %s', (parameters, action, input) => {
  const { type, config, needs, report } = importNode('notion', 2.2, parameters)
  expect(report.problems.filter(({ kind }) => kind === 'node')).toEqual([])
  expect(type).toBe('CONNECTOR')
  expect(config).toMatchObject({ connector: 'notion', action })
  expect(config.input).toEqual({ ...input, ...speaks })
  expect(needs).toMatchObject([{ type: 'notionApi', as: 'NOTION' }])
})

const calendar = { mode: 'list', value: 'work' }
const utc = (code: string) => expect.stringMatching(new RegExp(`toUTC.*${code}`, 's'))

test.each([
  [
    1.3,
    {
      ...{ calendar, start: '={{ $json.from }}', end: '2026-01-31 10:00' },
      additionalFields: {
        ...{ summary: '={{ $json.s }}', description: 'D', attendees: ['a@x.test, b@x.test'], color: '3' },
        ...{ repeatFrecuency: 'weekly', repeatHowManyTimes: 2, guestsCanModify: false },
        conferenceDataUi: { conferenceDataValues: { conferenceSolution: 'hangoutsMeet' } },
      },
      useDefaultReminders: false,
      remindersUi: { remindersValues: [{ method: 'email', minutes: 5 }] },
    },
    'createEvent',
    {
      ...{ calendar: 'work', start: utc('json.from'), end: utc('2026-01-31 10:00') },
      timeZone: '={{ $now.zoneName }}',
      ...{ summary: '={{ (($json.s)) || null }}', description: 'D', color: '3' },
      attendees: ['a@x.test', 'b@x.test'],
      recurrence: expect.stringMatching(/FREQ=.*"weekly".*COUNT=.*"2"/s),
      reminders: { useDefault: false, overrides: [{ method: 'email', minutes: 5 }] },
      conference: 'hangoutsMeet',
    },
  ],
  [
    1.3,
    { calendar, additionalFields: { allday: 'yes' } },
    'createEvent',
    {
      calendar: 'work',
      start: expect.stringMatching(/yyyy-MM-dd'\).*\$now/s),
      end: expect.stringContaining("$now.plus(1, 'hour')"),
      timeZone: '={{ $now.zoneName }}',
    },
  ],
  [
    1,
    {
      ...{ operation: 'getAll', calendar: 'a%40x.test', returnAll: true },
      options: { timeMin: '={{ $now }}', singleEvents: true, fields: '=items(summary, start(dateTime))' },
    },
    'listEvents',
    { calendar: 'a@x.test', single: true, from: utc('now'), fields: 'summary,start(dateTime)' },
  ],
  [
    1.3,
    { operation: 'getAll', calendar, limit: 5, options: {} },
    'listEvents',
    { calendar: 'work', single: true, from: utc('now'), to: utc('week: 1'), limit: 5 },
  ],
  [
    1.2,
    {
      ...{ operation: 'update', calendar, eventId: '={{ $json.id }}' },
      updateFields: {
        start: '={{ $json.t }}',
        attendeesUi: { values: { attendees: ['={{ $json.mail }}'] } },
      },
    },
    'updateEvent',
    {
      ...{
        calendar: 'work',
        event: '={{ $json.id }}',
        start: utc('json.t'),
        timeZone: '={{ $now.zoneName }}',
      },
      ...{ attendees: expect.stringContaining('$json.mail'), addAttendees: true },
    },
  ],
  [1, { operation: 'delete', calendar, eventId: 'e1' }, 'deleteEvent', { calendar: 'work', event: 'e1' }],
  [
    1.3,
    { resource: 'calendar', calendar, timeMin: '={{ $json.a }}', timeMax: '={{ $json.b }}', options: {} },
    'findBusyTimes',
    { calendar: 'work', from: utc('json.a'), to: utc('json.b'), timeZone: '={{ $now.zoneName }}' },
  ],
])('Google Calendar of version %s with %j becomes %s', (version, parameters, action, input) => {
  const { config, needs } = importNode('googleCalendar', version, parameters)
  expect(config).toMatchObject({ connector: 'google-calendar', action })
  expect(config.input).toEqual(input)
  expect(needs).toMatchObject([{ type: 'googleCalendarOAuth2Api', as: 'OAUTH2' }])
})

const mine = {
  owner: { mode: 'url', value: 'https://github.com/ada' },
  repository: { mode: 'list', value: 'notes' },
}
const ours = { owner: 'ada', repo: 'notes' }

test.each([
  [
    { resource: 'file', operation: 'get', filePath: '=a/{{ $json.n }}.json', asBinaryProperty: false },
    'getFile',
    { path: expect.stringContaining('$json.n') },
  ],
  [
    { resource: 'file', filePath: 'a/', fileContent: '={{ $json.t }}', commitMessage: 'M' },
    'createFile',
    {
      path: 'a',
      message: 'M',
      text: expect.stringContaining('? null : text)(($json.t)'),
      base64: expect.any(String),
    },
  ],
  [
    {
      ...{ resource: 'file', operation: 'edit', filePath: 'a', binaryData: true, commitMessage: 'M' },
      additionalParameters: { branch: { branch: 'dev' }, author: { name: 'A', email: 'a@x.test' } },
    },
    'editFile',
    {
      ...{ path: 'a', message: 'M', file: '={{ $binary["data"] }}', branch: 'dev' },
      author: { name: 'A', email: 'a@x.test' },
    },
  ],
  [{ resource: 'file', operation: 'list', filePath: '/' }, 'listFiles', { path: '={{ "" }}' }],
  [
    { title: 'T', body: '={{ $json.b }}', labels: [{ label: 'bug' }], assignees: [] },
    'createIssue',
    { title: 'T', body: expect.stringContaining('($json.b)'), labels: ['bug'], assignees: [] },
  ],
  [
    {
      operation: 'edit',
      issueNumber: '={{ $json.n }}',
      editFields: { state: 'closed', assignees: [{ assignee: 'a' }] },
    },
    'editIssue',
    { issue: '={{ $json.n }}', state: 'closed', assignees: ['a'] },
  ],
  [{ operation: 'createComment', issueNumber: 4, body: 'x' }, 'commentOnIssue', { issue: 4, body: 'x' }],
  [
    { resource: 'repository', limit: 10, getRepositoryIssuesFilters: { sort: 'created', labels: '' } },
    'listIssues',
    { sort: 'created', limit: 10 },
  ],
  [
    { resource: 'review', event: 'requestChanges', body: 'no', pullRequestNumber: 5, additionalFields: {} },
    'createReview',
    { pull: 5, event: 'REQUEST_CHANGES', body: 'no' },
  ],
  [
    { resource: 'release', releaseTag: 'v1', additionalFields: { draft: true } },
    'createRelease',
    { tag_name: 'v1', draft: true },
  ],
])('GitHub with %j becomes %s', (parameters, action, input) => {
  const { config, needs } = importNode('github', 1.1, { ...mine, ...parameters })
  expect(config).toMatchObject({ connector: 'github', action })
  expect(config.input).toEqual({ ...ours, ...input })
  expect(needs).toMatchObject([{ type: 'githubApi' }])
})

const doc = { documentURL: 'https://docs.google.com/document/d/d-1/edit' }

test.each([
  [{ operation: 'get', ...doc }, 'google-docs', 'readText', { document: 'd-1', tables: false }],
  [{ operation: 'get', simple: false, documentURL: 'd1' }, 'google-docs', 'getDocument', { document: 'd1' }],
  [
    {
      ...{ operation: 'update', documentURL: '={{ $json.id }}' },
      actionsUi: {
        actionFields: [
          { action: 'insert', text: '={{ $json.t }}' },
          { action: 'replaceAll', text: 'a', replaceText: 'b', matchCase: true },
          { object: 'pageBreak', action: 'insert', locationChoice: 'location', index: 3 },
        ],
      },
    },
    'google-docs',
    'updateDocument',
    {
      document: expect.stringContaining('$json.id'),
      requests: [
        { insertText: { text: '={{ $json.t }}', endOfSegmentLocation: { segmentId: '' } } },
        { replaceAllText: { replaceText: 'b', containsText: { text: 'a', matchCase: true } } },
        { insertPageBreak: { location: { segmentId: '', index: 3 } } },
      ],
    },
  ],
  [
    { title: 'T', folderId: 'dir' },
    'google-drive',
    'createDocument',
    { name: 'T', folder: 'dir', fields: 'kind,id,name,mimeType' },
  ],
])('Google Docs with %j becomes %s %s', (parameters, connector, action, input) => {
  const { config, needs } = importNode('googleDocs', 2, parameters)
  expect(config).toMatchObject({ connector, action })
  expect(config.input).toEqual(input)
  expect(needs).toMatchObject([{ type: 'googleDocsOAuth2Api' }])
})
