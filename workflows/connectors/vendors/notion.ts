import type { Connector, ConnectorMaking, ConnectorPages, ConnectorStep } from '../connector.ts'
import {
  choiceInput,
  flagInput,
  limitInput,
  listInput,
  nameInput,
  objectInput,
  recordInput,
  textInput,
} from '../schemas.ts'

const database = nameInput('Database', 'The database: its id.', { 'x-options': 'databases' })
const page = nameInput('Page', 'The page: its id.')
const simple = flagInput(
  'Simplify',
  'Pages are {id, name, url} with the values of their properties as property_name, and not all that Notion says of them.',
)
const notionVersion = textInput(
  'Notion version',
  'The version of the API that is spoken; 2022-06-28 without it.',
)
const properties = recordInput(
  'Properties',
  'The values of the page by the names of its properties, each as Notion has it: {"Done": {"checkbox": true}}.',
)
const children = listInput(
  recordInput('Block', 'A block as Notion has it.'),
  'Blocks',
  'What stands on the page, at most 100 blocks.',
  { maxItems: 100 },
)
const icon = recordInput('Icon', 'Its icon: {"emoji": "..."} or {"external": {"url": "..."}}.')
const block = nameInput('Block', 'The id of the block, or of the page that the blocks are on.')

const VERSION = {
  'Notion-Version': '{{ $length($input.notionVersion) > 0 ? $input.notionVersion : "2022-06-28" }}',
}
const SIZE = '{{ $input.limit < 100 ? $input.limit : 100 }}'

function pages(into: ConnectorPages['into']): ConnectorPages {
  return {
    items: '$item.results',
    next: '$item.has_more ? $item.next_cursor : null',
    ...(into ? { into } : {}),
    limit: '$input.limit',
  }
}

const IN_BODY = pages({ body: 'start_cursor' })
const IN_QUERY = pages({ query: 'start_cursor' })

function request(step: Omit<ConnectorStep, 'name' | 'headers'>): ConnectorStep {
  return { name: 'answer', headers: VERSION, ...step }
}

const SIMPLER: ConnectorMaking = {
  name: 'simple',
  when: '$input.simple',
  make: 'notionPages',
  of: { found: '{{ $nodes.answer }}' },
}
const RESULT = '{{ $input.simple ? $nodes.simple : $nodes.answer }}'

/** Notion's API: developers.notion.com/reference. */
export const NOTION: Connector = {
  name: 'notion',
  title: 'Notion',
  summary: 'Pages, databases and blocks of Notion.',
  version: 1,
  server: 'https://api.notion.com',
  signIn: ['NOTION', 'OAUTH2'],
  setup: 'An internal integration with its secret, which the pages and databases are shared with.',
  options: {
    databases: {
      steps: [
        {
          name: 'found',
          method: 'POST',
          path: '/v1/search',
          headers: { 'Notion-Version': '2022-06-28' },
          body: { filter: { property: 'object', value: 'database' }, page_size: 100 },
        },
      ],
      list: '$nodes.found.results.{"value": id, "label": title[0].plain_text}',
    },
  },
  actions: {
    queryDatabase: {
      name: 'List pages of a database',
      summary: 'Reads the pages of a database: all, or those that pass a filter.',
      safety: 'REPEATABLE',
      input: objectInput(
        {
          database,
          filter: recordInput('Filter', 'Only the pages that pass it: a filter as Notion has it.'),
          sorts: listInput(
            recordInput('Sort', 'A sort as Notion has it.'),
            'Sorts',
            'What the pages are sorted by.',
          ),
          ...{ limit: limitInput(), simple, notionVersion },
        },
        ['database'],
      ),
      steps: [
        request({
          method: 'POST',
          path: '/v1/databases/{{ $input.database }}/query',
          body: { filter: '{{ $input.filter }}', sorts: '{{ $input.sorts }}', page_size: SIZE },
          pages: IN_BODY,
        }),
        SIMPLER,
      ],
      result: RESULT,
    },
    getPage: {
      name: 'Get a page',
      summary: 'Reads a page: its properties, and not what stands on it.',
      safety: 'REPEATABLE',
      input: objectInput({ page, simple, notionVersion }, ['page']),
      steps: [request({ method: 'GET', path: '/v1/pages/{{ $input.page }}' }), SIMPLER],
      result: RESULT,
    },
    createDatabasePage: {
      name: 'Create a page in a database',
      summary: 'Adds a page to a database.',
      safety: 'ONCE',
      input: objectInput(
        {
          database,
          title: textInput('Title', "The page's title. The property that takes it is looked up."),
          ...{ properties, children, icon, simple, notionVersion },
        },
        ['database'],
      ),
      steps: [
        request({ method: 'GET', path: '/v1/databases/{{ $input.database }}' }),
        {
          ...request({
            method: 'POST',
            path: '/v1/pages',
            body: {
              parent: { database_id: '{{ $input.database }}' },
              properties:
                '{{ $merge([$length($input.title) > 0 ? {$keys($nodes.answer.properties)[$lookup($nodes.answer.properties, $).type = "title"]: ' +
                '{"title": [{"text": {"content": $input.title}}]}} : {}, $input.properties]) }}',
              children: '{{ $input.children }}',
              icon: '{{ $input.icon }}',
            },
          }),
          name: 'created',
        },
        { ...SIMPLER, of: { found: '{{ $nodes.created }}' } },
      ],
      result: '{{ $input.simple ? $nodes.simple : $nodes.created }}',
    },
    createPage: {
      name: 'Create a page under a page',
      summary: 'Adds a page below another one.',
      safety: 'ONCE',
      input: objectInput(
        { page, title: textInput('Title', "The page's title."), children, icon, simple, notionVersion },
        ['page', 'title'],
      ),
      steps: [
        request({
          method: 'POST',
          path: '/v1/pages',
          body: {
            parent: { page_id: '{{ $input.page }}' },
            properties: { title: [{ text: { content: '{{ $input.title }}' } }] },
            children: '{{ $input.children }}',
            icon: '{{ $input.icon }}',
          },
        }),
        SIMPLER,
      ],
      result: RESULT,
    },
    updatePage: {
      name: 'Update a page',
      summary: 'Changes the named properties of a page; the others stay.',
      safety: 'REPEATABLE',
      input: objectInput({ page, properties, icon, simple, notionVersion }, ['page']),
      steps: [
        request({
          method: 'PATCH',
          path: '/v1/pages/{{ $input.page }}',
          body: { properties: '{{ $merge([{}, $input.properties]) }}', icon: '{{ $input.icon }}' },
        }),
        SIMPLER,
      ],
      result: RESULT,
    },
    archivePage: {
      name: 'Archive a page',
      summary: 'Moves a page to the trash.',
      safety: 'REPEATABLE',
      input: objectInput({ page, simple, notionVersion }, ['page']),
      steps: [
        request({ method: 'PATCH', path: '/v1/pages/{{ $input.page }}', body: { archived: true } }),
        SIMPLER,
      ],
      result: RESULT,
    },
    search: {
      name: 'Search',
      summary: 'Finds pages and databases by their titles.',
      safety: 'REPEATABLE',
      input: objectInput({
        query: textInput('Query', 'What the title has. Without it all that is shared with the integration.'),
        object: choiceInput(['page', 'database'], 'Kind', 'Only pages, or only databases.'),
        sort: recordInput('Sort', 'A sort as Notion has it.'),
        ...{ limit: limitInput(), simple, notionVersion },
      }),
      steps: [
        request({
          method: 'POST',
          path: '/v1/search',
          body: {
            query: '{{ $input.query }}',
            filter: '{{ $exists($input.object) ? {"property": "object", "value": $input.object} : null }}',
            sort: '{{ $input.sort }}',
            page_size: SIZE,
          },
          pages: IN_BODY,
        }),
        SIMPLER,
      ],
      result: RESULT,
    },
    getDatabase: {
      name: 'Get a database',
      summary: 'Reads a database: its title and the kinds of its properties.',
      safety: 'REPEATABLE',
      input: objectInput({ database, simple, notionVersion }, ['database']),
      steps: [request({ method: 'GET', path: '/v1/databases/{{ $input.database }}' }), SIMPLER],
      result: RESULT,
    },
    listBlocks: {
      name: 'List blocks',
      summary: 'Reads what stands on a page or in a block, without what is inside of those blocks.',
      safety: 'REPEATABLE',
      input: objectInput(
        {
          block,
          ...{ limit: limitInput(), notionVersion },
          simple: flagInput('Simplify', 'The text of a block is its content, and not a list of pieces.'),
        },
        ['block'],
      ),
      steps: [
        request({
          method: 'GET',
          path: '/v1/blocks/{{ $input.block }}/children',
          query: { page_size: SIZE },
          pages: IN_QUERY,
        }),
        {
          ...{ name: 'simple', when: '$input.simple', make: 'notionBlocks' },
          of: { found: '{{ $nodes.answer }}', root: '{{ $input.block }}' },
        },
      ],
      result: RESULT,
    },
    appendBlocks: {
      name: 'Append blocks',
      summary: 'Adds blocks at the end of a page or of a block.',
      safety: 'ONCE',
      input: objectInput({ block, children, notionVersion }, ['block', 'children']),
      steps: [
        request({
          method: 'PATCH',
          path: '/v1/blocks/{{ $input.block }}/children',
          body: { children: '{{ $input.children }}' },
        }),
      ],
    },
    listUsers: {
      name: 'List users',
      summary: 'Reads who is in the workspace.',
      safety: 'REPEATABLE',
      input: objectInput({ limit: limitInput(), notionVersion }),
      steps: [request({ method: 'GET', path: '/v1/users', query: { page_size: SIZE }, pages: IN_QUERY })],
    },
    getUser: {
      name: 'Get a user',
      summary: 'Reads a user of the workspace.',
      safety: 'REPEATABLE',
      input: objectInput({ user: nameInput('User', 'The id of the user.'), notionVersion }, ['user']),
      steps: [request({ method: 'GET', path: '/v1/users/{{ $input.user }}' })],
    },
  },
}
