-- Tables of rows that a team's workflows and people keep.
create table data_tables (
  id uuid primary key,
  team_id uuid not null references teams on delete cascade,
  name text not null,
  -- [{id, name, type, required, unique, place}]: the id is the key of its values in data_rows.cells and is never given to
  -- another column, the place is its search column there.
  columns json not null,
  -- How many columns it has had: the next one's id.
  columns_made integer not null default 0,
  row_count bigint not null default 0,
  bytes bigint not null default 0,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint data_tables_name unique (team_id, name)
);

-- One table holds the rows of all data tables. Of the other ways, a table of SQL for each would need rights to change the
-- schema at run time and fill the catalogs, and a row for each cell would need a join for each condition and ten times
-- the writes. Here each column has a search column of its kind: any conditions are one statement over one table, and an
-- index is written only for the cells that have a value. What is read comes from cells; a search column only finds it.
create table data_rows (
  table_id uuid not null references data_tables on delete cascade,
  id uuid not null,
  -- The values by the id of their column.
  cells json not null,
  bytes integer not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  -- Texts as bytes of UTF-8, since NUL and lone surrogates must pass.
  t1 bytea, t2 bytea, t3 bytea, t4 bytea, t5 bytea, t6 bytea, t7 bytea, t8 bytea, t9 bytea, t10 bytea,
  t11 bytea, t12 bytea, t13 bytea, t14 bytea, t15 bytea, t16 bytea, t17 bytea, t18 bytea, t19 bytea, t20 bytea,
  -- Numbers, booleans as 0 and 1, dates in milliseconds since 1970, and how long JSON is.
  n1 numeric, n2 numeric, n3 numeric, n4 numeric, n5 numeric, n6 numeric, n7 numeric, n8 numeric, n9 numeric, n10 numeric,
  n11 numeric, n12 numeric, n13 numeric, n14 numeric, n15 numeric, n16 numeric, n17 numeric, n18 numeric, n19 numeric, n20 numeric,
  primary key (table_id, id)
);
create index data_rows_t1 on data_rows (table_id, substring(t1 from 1 for 256), id) where t1 is not null;
create index data_rows_t2 on data_rows (table_id, substring(t2 from 1 for 256), id) where t2 is not null;
create index data_rows_t3 on data_rows (table_id, substring(t3 from 1 for 256), id) where t3 is not null;
create index data_rows_t4 on data_rows (table_id, substring(t4 from 1 for 256), id) where t4 is not null;
create index data_rows_t5 on data_rows (table_id, substring(t5 from 1 for 256), id) where t5 is not null;
create index data_rows_t6 on data_rows (table_id, substring(t6 from 1 for 256), id) where t6 is not null;
create index data_rows_t7 on data_rows (table_id, substring(t7 from 1 for 256), id) where t7 is not null;
create index data_rows_t8 on data_rows (table_id, substring(t8 from 1 for 256), id) where t8 is not null;
create index data_rows_t9 on data_rows (table_id, substring(t9 from 1 for 256), id) where t9 is not null;
create index data_rows_t10 on data_rows (table_id, substring(t10 from 1 for 256), id) where t10 is not null;
create index data_rows_t11 on data_rows (table_id, substring(t11 from 1 for 256), id) where t11 is not null;
create index data_rows_t12 on data_rows (table_id, substring(t12 from 1 for 256), id) where t12 is not null;
create index data_rows_t13 on data_rows (table_id, substring(t13 from 1 for 256), id) where t13 is not null;
create index data_rows_t14 on data_rows (table_id, substring(t14 from 1 for 256), id) where t14 is not null;
create index data_rows_t15 on data_rows (table_id, substring(t15 from 1 for 256), id) where t15 is not null;
create index data_rows_t16 on data_rows (table_id, substring(t16 from 1 for 256), id) where t16 is not null;
create index data_rows_t17 on data_rows (table_id, substring(t17 from 1 for 256), id) where t17 is not null;
create index data_rows_t18 on data_rows (table_id, substring(t18 from 1 for 256), id) where t18 is not null;
create index data_rows_t19 on data_rows (table_id, substring(t19 from 1 for 256), id) where t19 is not null;
create index data_rows_t20 on data_rows (table_id, substring(t20 from 1 for 256), id) where t20 is not null;
create index data_rows_n1 on data_rows (table_id, n1, id) where n1 is not null;
create index data_rows_n2 on data_rows (table_id, n2, id) where n2 is not null;
create index data_rows_n3 on data_rows (table_id, n3, id) where n3 is not null;
create index data_rows_n4 on data_rows (table_id, n4, id) where n4 is not null;
create index data_rows_n5 on data_rows (table_id, n5, id) where n5 is not null;
create index data_rows_n6 on data_rows (table_id, n6, id) where n6 is not null;
create index data_rows_n7 on data_rows (table_id, n7, id) where n7 is not null;
create index data_rows_n8 on data_rows (table_id, n8, id) where n8 is not null;
create index data_rows_n9 on data_rows (table_id, n9, id) where n9 is not null;
create index data_rows_n10 on data_rows (table_id, n10, id) where n10 is not null;
create index data_rows_n11 on data_rows (table_id, n11, id) where n11 is not null;
create index data_rows_n12 on data_rows (table_id, n12, id) where n12 is not null;
create index data_rows_n13 on data_rows (table_id, n13, id) where n13 is not null;
create index data_rows_n14 on data_rows (table_id, n14, id) where n14 is not null;
create index data_rows_n15 on data_rows (table_id, n15, id) where n15 is not null;
create index data_rows_n16 on data_rows (table_id, n16, id) where n16 is not null;
create index data_rows_n17 on data_rows (table_id, n17, id) where n17 is not null;
create index data_rows_n18 on data_rows (table_id, n18, id) where n18 is not null;
create index data_rows_n19 on data_rows (table_id, n19, id) where n19 is not null;
create index data_rows_n20 on data_rows (table_id, n20, id) where n20 is not null;

-- How much each team keeps. Writers hold their table first, and this row last, until they commit.
create table data_table_usage (
  team_id uuid primary key references teams on delete cascade,
  row_count bigint not null default 0,
  bytes bigint not null default 0
);

-- Which data tables the nodes of a version name, by an id or a name.
create table version_tables (
  workflow_id uuid not null,
  version integer not null,
  named text not null,
  primary key (workflow_id, version, named),
  foreign key (workflow_id, version) references workflow_versions (workflow_id, version) on delete cascade
);
create index version_tables_named on version_tables (named);
